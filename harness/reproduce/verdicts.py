"""Whether a row reproduces its published numbers.

A published number is reproduced if it lies in our 95 % bootstrap interval. A row ``reproduces`` if all its numbers do,
and ``does not`` if one lies outside. ``cannot tell``: the row has no published number, or departs from its setting, or
an interval is wider than 10 points, in which almost any number lies. ``not run``: it was not run on any task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.scoring import METRICS

REPRODUCES, DOES_NOT, CANNOT_TELL, NOT_RUN = VERDICTS = ("reproduces", "does not", "cannot tell", "not run")
WIDEST = 10.0  # points (of a perplexity: units)


@dataclass(frozen=True, slots=True)
class Compared:
    """One published number with ours, on the scale on which it is printed.

    Args:
        ours: Mean.
        low: Lower end of its interval.
        high: Upper end.
        paper: The published number.
    """

    task: str
    metric: str
    ours: float
    low: float
    high: float
    paper: float

    @property
    def verdict(self) -> str:
        """Of this number alone."""
        if not self.low <= self.paper <= self.high:
            return DOES_NOT
        return REPRODUCES if self.high - self.low <= WIDEST else CANNOT_TELL


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """The verdict on one row.

    Args:
        why: What it rests on, in words; "" if the numbers say it.
        compared: Every number that was compared.
    """

    verdict: str
    why: str = ""
    compared: tuple[Compared, ...] = ()


def compared_of(cells: Mapping[str, Any]) -> tuple[Compared, ...]:
    """What can be compared among the cells of a line: task -> its scores."""
    return tuple(
        _compared(task, metric, score.ours, score.paper)
        for task, own in cells.items()
        for metric, score in own.scores.items()
        if score.ours is not None and score.paper is not None
    )


def _compared(task: str, metric: str, ours: Interval, paper: float) -> Compared:
    scale = 100 if METRICS[metric].unit == "share" else 1
    low = ours.mean if ours.low is None else ours.low
    high = ours.mean if ours.high is None else ours.high
    half = 0.05  # the paper prints one decimal
    return Compared(task, metric, scale * ours.mean, scale * low - half, scale * high + half, paper)


def row_verdict(compared: Iterable[Compared], *, run: bool, differs: str = "", limit: int | None = None) -> RowVerdict:
    """The verdict on a row.

    Args:
        run: Whether it was run on any task.
        differs: How it departs from the setting of its published numbers; "" if it does not.
        limit: Number of questions that a trial was limited to; None for a whole run.
    """
    numbers = tuple(compared)
    if not run:
        return RowVerdict(NOT_RUN)
    if limit is not None:
        return RowVerdict(CANNOT_TELL, f"a trial with {limit} questions", numbers)
    if differs or not numbers:
        return RowVerdict(CANNOT_TELL, differs or "no published number", numbers)
    verdicts = {one.verdict for one in numbers}
    return RowVerdict(next(one for one in (DOES_NOT, CANNOT_TELL, REPRODUCES) if one in verdicts), "", numbers)
