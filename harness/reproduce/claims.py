"""Testing a paper's claims on our rows: paired differences on the same questions, Holm over all tests of a table.

A claim says that some lines score higher than others. ``holds``: the difference and its whole 95 % bootstrap interval
are above 0, and Holm's adjusted p value is below 0.05. ``does not hold``: the same below 0. ``not significant``:
anything else. Holm's correction is over all tests that the table's file declares, whether or not their rows were run:
tests without a result count with p = 1, which gives every other test at least the correction of the whole table. So no
claim holds on a part of a table that would not hold by the same numbers on all of it.

Where a line has several seeds, a question's score is their mean. Controls (other rules, or an equal
number of retrieval calls without rules) are tested in the same way: a claim is about the rules only if it also holds
against them. Upper bounds are shown, not tested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_rag.harness.report.stats import Difference, holm, paired
from lm_eval_rag.harness.reproduce.row_results import Result, Results, clusters_of
from lm_eval_rag.harness.reproduce.table_spec import BEST, MEAN, Claim, Row, Table

HOLDS, FAILS, UNCLEAR = VERDICTS = ("holds", "does not hold", "not significant")
ALPHA = 0.05
BASELINE = "baseline"  # name of a claim's own ``worse`` among what ``better`` is compared with


@dataclass(frozen=True, slots=True)
class Comparison:
    """``better`` minus other lines on one task and metric.

    Args:
        against: ``baseline`` for the claim's own ``worse``, else the name of a control or a bound.
        difference: With interval and p value.
        p_holm: Adjusted over the page; 1 for a bound.
        verdict: One of ``VERDICTS``; "" for a bound.
        line: Name of the line of ``worse`` that was compared with, where the claim is about the best of them; else "".
    """

    against: str
    difference: Difference
    p_holm: float = 1.0
    verdict: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Tested:
    """A claim on one task and metric: the baseline first, then controls, then bounds.

    Args:
        absent: Controls that were not run on the task.
    """

    task: str
    metric: str
    comparisons: tuple[Comparison, ...]
    absent: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Of the claim itself."""
        return self.comparisons[0].verdict

    @property
    def verdict_with_controls(self) -> str:
        """Of the claim against the baseline and every control; "" where no control was run.

        Where one of several controls was not run, it is never ``holds``.
        """
        verdicts = [one.verdict for one in self.comparisons if one.verdict]
        if len(verdicts) < 2:
            return ""
        if FAILS in verdicts:
            return FAILS
        return HOLDS if set(verdicts) == {HOLDS} and not self.absent else UNCLEAR


def judge(table: Table, results: Results) -> list[tuple[Claim, list[Tested]]]:
    """Every claim with its tests, none where a line was not run; Holm's correction is over all declared ones."""
    lines = table.lines()
    tested = [(claim, list(_tests(claim, lines, results))) for claim in table.claims]
    p_values = [
        one.difference.p
        for claim, tests in tested
        for test in tests
        for one in test.comparisons
        if one.against not in claim.bounds
    ]
    missing = max(0, declared(table) - len(p_values))
    adjusted = iter(holm([*p_values, *[1.0] * missing]))

    def with_verdict(claim: Claim, one: Comparison) -> Comparison:
        if one.against in claim.bounds:
            return one
        p = next(adjusted)
        return replace(one, p_holm=p, verdict=verdict(one.difference, p))

    return [
        (claim, [replace(t, comparisons=tuple(with_verdict(claim, one) for one in t.comparisons)) for t in tests])
        for claim, tests in tested
    ]


def declared(table: Table) -> int:
    """The number of tests that the claims of a table declare: over tasks, metrics, and what ``better`` must beat."""
    lines = table.lines()

    def have(names: Sequence[str], task: str) -> bool:
        return all(task in row.tasks for name in names for row in lines[name])

    return sum(
        len(claim.metrics) * (1 + sum(have(names, task) for names in claim.controls.values()))
        for claim in table.claims
        for task in _tasks(claim, lines)
        if have([*claim.better, *claim.worse], task)
    )


def _tasks(claim: Claim, lines: Mapping[str, tuple[Row, ...]]) -> Sequence[str]:
    return claim.tasks or list(
        dict.fromkeys(task for name in claim.better for row in lines[name] for task in row.tasks)
    )


def verdict(difference: Difference, p_holm: float) -> str:
    """One of ``VERDICTS``."""
    mean = difference.interval.mean
    low = mean if difference.interval.low is None else difference.interval.low
    high = mean if difference.interval.high is None else difference.interval.high
    if p_holm >= ALPHA or low <= 0 <= high:
        return UNCLEAR
    return HOLDS if low > 0 else FAILS


def _tests(claim: Claim, lines: Mapping[str, tuple[Row, ...]], results: Results) -> Iterable[Tested]:
    for task in _tasks(claim, lines):
        for metric in claim.metrics:
            best = _best(claim, lines, results, task, metric)
            worse = claim.worse if claim.of == MEAN else [best] if best else []
            others = {BASELINE: worse, **claim.controls, **claim.bounds}
            ours = line_scores(claim.better, lines, results, task, metric, claim)
            comparisons = []
            for against, names in others.items():
                theirs = line_scores(names, lines, results, task, metric, claim)
                shared = [id_ for id_ in ours if id_ in theirs]
                if shared:
                    columns = [ours[i] for i in shared], [theirs[i] for i in shared]
                    difference = paired(*columns, clusters=clusters_of(results, task, shared))
                    line = best if against == BASELINE else ""
                    comparisons.append(Comparison(against, difference, line=line))
            if comparisons and comparisons[0].against == BASELINE:
                compared = {one.against for one in comparisons}
                absent = tuple(name for name in claim.controls if name not in compared)
                yield Tested(task, metric, tuple(comparisons), absent)


def _best(claim: Claim, lines: Mapping[str, tuple[Row, ...]], results: Results, task: str, metric: str) -> str:
    """The line of ``worse`` with the highest mean on the questions of all; "" if one was not run, or none is asked."""
    if claim.of != BEST:
        return ""
    scores = {name: line_scores([name], lines, results, task, metric, claim) for name in (*claim.better, *claim.worse)}
    shared = set.intersection(*(set(values) for values in scores.values()))
    if not shared:
        return ""
    return max(claim.worse, key=lambda name: math.fsum(scores[name][id_] for id_ in shared))


def line_scores(
    names: Sequence[str],
    lines: Mapping[str, tuple[Row, ...]],
    results: Results,
    task: str,
    metric: str,
    claim: Claim | None = None,
) -> dict[str, float]:
    """Question id -> mean score over all rows of the lines, for questions that every row has a score on.

    With ``claim.bank`` a row that was trained on a part of the rule bank counts only on questions about that part
    (``own``) or about the others (``other``). {} when a row has not been run.
    """
    rows = [row for name in names for row in lines[name]]
    by_row = [(row, results[row.name, task]) for row in rows if (row.name, task) in results]
    if len(by_row) < len(rows) or not rows:
        return {}
    slice_, bank = (claim.slice, claim.bank) if claim else ("", "")
    scores = {}
    for id_ in dict.fromkeys(id_ for _, result in by_row for id_ in result.scores.get(metric, {})):
        counted = [result for row, result in by_row if _counts(row, result, id_, bank)]
        values = [result.scores.get(metric, {}).get(id_) for result in counted]
        if values and None not in values and (not slice_ or counted[0].slices.get(id_) == slice_):
            scores[id_] = sum(value for value in values if value is not None) / len(values)
    return scores


def _counts(row: Row, result: Result, id_: str, bank: str) -> bool:
    """Whether a question counts for a row under a claim's ``bank``."""
    part = result.banks.get(id_, "")
    if not bank:
        return True
    if not part:
        return False
    return not row.bank or (row.bank == part) == (bank == "own")
