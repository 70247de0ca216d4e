"""Verdicts on constructed scores, computed again by other means."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from scipy.stats import binomtest

from lm_eval_rag.harness.report.stats import Difference, Interval
from lm_eval_rag.harness.reproduce import claims
from lm_eval_rag.harness.reproduce.claims import FAILS, HOLDS, UNCLEAR, line_scores, verdict
from lm_eval_rag.harness.reproduce.row_results import Result
from lm_eval_rag.harness.reproduce.table_spec import Claim, Row, Table

TASK = "ruleqa_i"


def table_of(names: list[str], tested: list[Claim], bank: Mapping[str, str] | None = None) -> Table:
    rows = [Row(name, name.split("/")[0], name, "m", {}, (TASK,), bank=(bank or {}).get(name, "")) for name in names]
    return Table("t", "T", "table_2", (), ("em",), tuple(rows), tuple(tested), ())


def results(scores: Mapping[str, list[float]], banks: list[str] | None = None) -> dict[tuple[str, str], Result]:
    return {
        (name, TASK): Result(
            {"em": {f"q{i}": value for i, value in enumerate(values)}},
            slices={f"q{i}": "direct" if i % 2 else "rule_required" for i in range(len(values))},
            banks={f"q{i}": part for i, part in enumerate(banks or [])},
            questions=len(values),
        )
        for name, values in scores.items()
    }


def claim(better: str = "a", worse: str = "b", **options: object) -> Claim:
    return Claim("c", (better,), (worse,), ("em",), **options)  # type: ignore[arg-type]


def restated(ours: list[float], theirs: list[float], tests: int = 1) -> str:
    """For 0/1 scores, by scipy's binomial test and Bonferroni, which Holm never exceeds."""
    wins = sum(a > b for a, b in zip(ours, theirs, strict=True))
    losses = sum(a < b for a, b in zip(ours, theirs, strict=True))
    p = binomtest(wins, wins + losses).pvalue * tests if wins + losses else 1.0
    return UNCLEAR if p >= 0.05 else HOLDS if wins > losses else FAILS


@pytest.mark.parametrize(("gain", "expected"), [(0.3, HOLDS), (-0.3, FAILS), (0.0, UNCLEAR)])
def test_a_plain_difference(gain: float, expected: str) -> None:
    rng = random.Random(1)
    theirs = [float(rng.random() < 0.5) for _ in range(300)]
    ours = [float(rng.random() < 0.5 + gain) for _ in theirs]
    ((_, (outcome,)),) = claims.judge(table_of(["a", "b"], [claim()]), results({"a": ours, "b": theirs}))
    assert outcome.verdict == expected == restated(ours, theirs)
    assert outcome.comparisons[0].difference.interval.mean == pytest.approx((sum(ours) - sum(theirs)) / 300)
    assert outcome.verdict_with_controls == ""


def test_holm_is_over_the_whole_page_and_not_over_bounds() -> None:
    """7 wins to 0 is p 0.0156: below 0.05 alone, and with two tests still, but not with four."""
    ours, theirs = [1.0] * 7 + [0.0] * 40, [0.0] * 47
    scores = results({"a": ours, "b": theirs, "c": theirs})
    one = claim(bounds={"oracle": ("c",)})
    ((_, (alone,)),) = claims.judge(table_of(["a", "b", "c"], [one]), scores)
    assert alone.verdict == HOLDS and alone.comparisons[0].p_holm == pytest.approx(2 / 2**7)
    assert [c.verdict for c in alone.comparisons] == [HOLDS, ""]
    for n, expected in ((2, HOLDS), (4, UNCLEAR)):
        tested = claims.judge(table_of(["a", "b", "c"], [claim()] * n), scores)
        assert {outcome.verdict for _, (outcome,) in tested} == {expected}
        assert tested[0][1][0].comparisons[0].p_holm == pytest.approx(n * 2 / 2**7)


def test_rows_run_alone_gain_nothing_from_tests_that_were_not_run() -> None:
    """9 wins to 1 is p 0.021: with four tests not significant, however few of them were run."""
    ours, theirs = [1.0] * 9 + [0.0] * 31, [0.0] * 9 + [1.0] + [0.0] * 30
    table = table_of(["a", "b", "c", "d"], [claim(), claim("c", "b"), claim("a", "d", controls={"x": ("c",)})])
    scores = {"a": ours, "b": theirs, "c": theirs, "d": theirs}
    assert claims.declared(table) == 4
    for names in (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        outcome = claims.judge(table, results({name: scores[name] for name in names}))[0][1][0]
        assert outcome.verdict == UNCLEAR
        assert outcome.comparisons[0].p_holm == pytest.approx(4 * binomtest(9, 10).pvalue)
    alone = table_of(["a", "b"], [claim()])  # as it was before: the family of what was run
    assert claims.judge(alone, results({"a": ours, "b": theirs}))[0][1][0].verdict == HOLDS


def test_no_verdict_is_lost_when_the_other_rows_are_run() -> None:
    """What holds on a part of the table holds on all of it, whatever the other rows score."""
    rng = random.Random(3)
    table = table_of(list("abcd"), [claim("a", "b"), claim("c", "b"), claim("d", "b"), claim("c", "a")])
    held = 0
    shares = {"a": 0.6, "b": 0.3, "c": 0.5, "d": 0.7}
    for _ in range(20):
        scores = {name: [float(rng.random() < share) for _ in range(60)] for name, share in shares.items()}
        part = claims.judge(table, results({name: scores[name] for name in "ab"}))[0][1][0]
        whole = claims.judge(table, results(scores))[0][1][0]
        assert part.comparisons[0].p_holm >= whole.comparisons[0].p_holm - 1e-12
        held += part.verdict == HOLDS
        assert part.verdict != HOLDS or whole.verdict == HOLDS
    assert held


def test_the_best_of_several_lines_is_compared_with() -> None:
    """On each task the line with the highest mean; not tested before all of them were run."""
    ours, low, high = [1.0] * 50 + [0.0] * 50, [1.0] * 10 + [0.0] * 90, [0.0] * 20 + [1.0] * 40 + [0.0] * 40
    best = Claim("c", ("a",), ("low", "high"), ("em",), of="best")
    table = table_of(["a", "low", "high"], [best])
    ((_, (outcome,)),) = claims.judge(table, results({"a": ours, "low": low, "high": high}))
    one = outcome.comparisons[0]
    assert (one.against, one.line) == ("baseline", "high")
    assert one.difference.interval.mean == pytest.approx(0.1)
    ((_, tests),) = claims.judge(table, results({"a": ours, "low": low}))
    assert tests == []
    ((_, (mean,)),) = claims.judge(
        table_of(["a", "low", "high"], [replace(best, of="mean")]), results({"a": ours, "low": low, "high": high})
    )
    assert mean.comparisons[0].line == "" and mean.comparisons[0].difference.interval.mean == pytest.approx(0.25)


def test_a_rule_claim_must_hold_against_every_control() -> None:
    good, bad = [1.0] * 40 + [0.0] * 20, [0.0] * 60
    for control, expected in ((bad, HOLDS), (good, UNCLEAR), ([1.0] * 60, FAILS)):
        ruled = claim(controls={"random": ("c",)})
        scores = results({"a": good, "b": bad, "c": control})
        ((_, (outcome,)),) = claims.judge(table_of(["a", "b", "c"], [ruled]), scores)
        assert outcome.verdict == HOLDS and outcome.verdict_with_controls == expected


def test_a_control_that_was_not_run_makes_it_not_significant() -> None:
    good, bad = [1.0] * 40 + [0.0] * 20, [0.0] * 60
    ruled = claim(controls={"random": ("c",), "shuffled": ("d",)})
    for scores, expected in ((results({"a": good, "b": bad, "c": bad}), UNCLEAR), (results({"a": good, "b": bad}), "")):
        ((_, (outcome,)),) = claims.judge(table_of(["a", "b", "c", "d"], [ruled]), scores)
        assert outcome.verdict == HOLDS and outcome.verdict_with_controls == expected


def test_seeds_are_averaged_question_by_question() -> None:
    table = table_of(["a/seed0", "a/seed1", "b"], [claim()])
    by_row = results({"a/seed0": [1.0, 0.0, 1.0], "a/seed1": [1.0, 1.0, 0.0], "b": [0.0, 0.0, 0.0]})
    assert line_scores(["a"], table.lines(), by_row, TASK, "em") == {"q0": 1.0, "q1": 0.5, "q2": 0.5}
    ((_, (tested,)),) = claims.judge(table, by_row)
    assert tested.comparisons[0].difference.interval.mean == pytest.approx(2 / 3)
    assert tested.comparisons[0].difference.test == "bootstrap"
    del by_row["a/seed1", TASK]
    assert claims.judge(table, by_row) == [(table.claims[0], [])]


def test_only_questions_scored_on_both_sides_count() -> None:
    table = table_of(["a", "b"], [claim(), claim(slice="direct")])
    by_row = results({"a": [1.0, 1.0, 1.0, 1.0], "b": [0.0, 0.0]})
    assert [tests[0].comparisons[0].difference.interval.n for _, tests in claims.judge(table, by_row)] == [2, 1]


def test_rows_count_on_their_own_rules_or_on_all_others() -> None:
    banks = ["1/2", "2/2", "1/2", ""]
    own = table_of(["a", "b", "base"], [], {"a": "1/2", "b": "2/2"})
    by_row = results({"a": [1.0, 0.0, 1.0, 1.0], "b": [0.0, 1.0, 0.0, 1.0], "base": [0.0] * 4}, banks)
    for bank, value in (("own", 1.0), ("other", 0.0)):
        scores = line_scores(["a", "b"], own.lines(), by_row, TASK, "em", claim(bank=bank))
        assert scores == {"q0": value, "q1": value, "q2": value}
        assert set(line_scores(["base"], own.lines(), by_row, TASK, "em", claim(bank=bank))) == {"q0", "q1", "q2"}


@pytest.mark.parametrize(
    ("low", "high", "p", "expected"),
    [
        (0.01, 0.2, 0.04, HOLDS),
        (-0.2, -0.01, 0.04, FAILS),
        (-0.01, 0.2, 0.04, UNCLEAR),
        (0.01, 0.2, 0.05, UNCLEAR),
        (None, None, 0.001, HOLDS),
        (0.0, 0.2, 0.001, UNCLEAR),
    ],
)
def test_a_verdict_needs_interval_and_p(low: float | None, high: float | None, p: float, expected: str) -> None:
    mean = -0.1 if expected == FAILS else 0.1
    assert verdict(Difference(Interval(mean, low, high, 50), p, "bootstrap"), p) == expected


def test_a_claim_is_tested_on_clusters() -> None:
    """40 wins to 0 in 40 questions of one subject are one observation, and 40 wins in 40 subjects are 40."""
    ours, theirs = [1.0] * 40 + [0.0] * 40, [0.0] * 80
    for size, expected in ((40, UNCLEAR), (1, HOLDS)):
        labels = {f"q{i}": (i // size, i) for i in range(80)}
        found = {
            key: replace(result, keys=(("subject",), ("relation",)), labels=labels)
            for key, result in results({"a": ours, "b": theirs}).items()
        }
        ((_, (outcome,)),) = claims.judge(table_of(["a", "b"], [claim()]), found)
        assert outcome.verdict == expected
        assert outcome.comparisons[0].difference.test == "clustered t"
