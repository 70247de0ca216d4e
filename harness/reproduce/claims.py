"""Testing a paper's claims on our rows: paired differences on the same questions, Holm over all of a page.

A claim says that some lines score higher than others. ``holds``: its difference is above 0, its 95 % bootstrap interval
too, and Holm's adjusted p value is below 0.05. ``does not hold``: the same below 0. ``cannot tell``: anything else.
Where a line has several seeds, a question's score is their mean. Against controls (other rules, or as many calls
without rules) the same is tested: only a claim that holds against them too is about the rules. Upper bounds are shown,
not tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_rag.harness.report.stats import Difference, holm, paired
from lm_eval_rag.harness.reproduce.matrix import Claim, Row, Table
from lm_eval_rag.harness.reproduce.row_results import Found, Result

HOLDS, FAILS, UNCLEAR = VERDICTS = ("holds", "does not hold", "cannot tell")
ALPHA = 0.05
BASELINE = "the claim"  # as what a claim is tested against first


@dataclass(frozen=True, slots=True)
class Comparison:
    """``better`` minus something on one task and metric.

    Args:
        against: ``the claim`` for the claim's own ``worse``, else the name of a control or a bound.
        difference: With interval and p value.
        p_holm: Adjusted over the page; 1 where nothing is tested.
        verdict: One of ``VERDICTS``; "" for a bound.
    """

    against: str
    difference: Difference
    p_holm: float = 1.0
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Tested:
    """A claim on one task and metric: its own comparison first, then controls, then bounds.

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
    def by_rules(self) -> str:
        """Whether it holds against every control, those included that were not run; "" where none was run."""
        told = [one.verdict for one in self.comparisons if one.verdict]
        if len(told) < 2:
            return ""
        if FAILS in told:
            return FAILS
        return HOLDS if set(told) == {HOLDS} and not self.absent else UNCLEAR


def judge(table: Table, found: Found) -> list[tuple[Claim, list[Tested]]]:
    """Every claim with its tests; none where a line was not run. Holm is over all of them.

    Args:
        found: The results of rows and tasks.
    """
    lines = table.lines()
    tested = [(claim, list(_tests(claim, lines, found))) for claim in table.claims]
    family = [
        one.difference.p
        for claim, tests in tested
        for test in tests
        for one in test.comparisons
        if one.against not in claim.bounds
    ]
    adjusted = iter(holm(family))

    def with_verdict(claim: Claim, one: Comparison) -> Comparison:
        if one.against in claim.bounds:
            return one
        p = next(adjusted)
        return replace(one, p_holm=p, verdict=verdict(one.difference, p))

    return [
        (claim, [replace(t, comparisons=tuple(with_verdict(claim, one) for one in t.comparisons)) for t in tests])
        for claim, tests in tested
    ]


def verdict(difference: Difference, p_holm: float) -> str:
    """``holds``, ``does not hold`` or ``cannot tell``."""
    found = difference.interval
    low = found.mean if found.low is None else found.low
    high = found.mean if found.high is None else found.high
    if p_holm >= ALPHA or low <= 0 <= high:
        return UNCLEAR
    return HOLDS if low > 0 else FAILS


def _tests(claim: Claim, lines: Mapping[str, tuple[Row, ...]], found: Found) -> Iterable[Tested]:
    everywhere = dict.fromkeys(task for name in claim.better for row in lines[name] for task in row.tasks)
    others = {BASELINE: claim.worse, **claim.controls, **claim.bounds}
    for task in claim.tasks or everywhere:
        for metric in claim.metrics:
            ours = line_scores(claim.better, lines, found, task, metric, claim)
            made = []
            for against, names in others.items():
                theirs = line_scores(names, lines, found, task, metric, claim)
                shared = [id_ for id_ in ours if id_ in theirs]
                if shared:
                    made.append(Comparison(against, paired([ours[i] for i in shared], [theirs[i] for i in shared])))
            if made and made[0].against == BASELINE:
                ran = {one.against for one in made}
                absent = tuple(name for name in claim.controls if name not in ran)
                yield Tested(task, metric, tuple(made), absent)


def line_scores(
    names: Sequence[str],
    lines: Mapping[str, tuple[Row, ...]],
    found: Found,
    task: str,
    metric: str,
    claim: Claim | None = None,
) -> dict[str, float]:
    """Question id -> mean score of the lines' rows, for questions that all of them were scored on.

    With ``claim.bank`` a row that was trained on a part of the rule bank counts on that part alone, or on all others.
    {} when a row has not been run.
    """
    rows = [row for name in names for row in lines[name]]
    results = [found.get((row.name, task)) for row in rows]
    if not results or None in results:
        return {}
    both = [(row, result) for row, result in zip(rows, results, strict=True) if result is not None]
    slice_, bank = (claim.slice, claim.bank) if claim else ("", "")
    scores = {}
    for id_ in dict.fromkeys(id_ for _, result in both for id_ in result.scores.get(metric, {})):
        counted = [result for row, result in both if _counts(row, result, id_, bank)]
        values = [result.scores.get(metric, {}).get(id_) for result in counted]
        if values and None not in values and (not slice_ or counted[0].slices.get(id_) == slice_):
            scores[id_] = sum(value for value in values if value is not None) / len(values)
    return scores


def _counts(row: Row, result: Result, id_: str, bank: str) -> bool:
    part = result.banks.get(id_, "")
    if not bank:
        return True
    if not part:
        return False
    return not row.bank or (row.bank == part) == (bank == "own")
