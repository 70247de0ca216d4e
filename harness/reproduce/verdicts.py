"""Whether a row reproduces its published numbers.

A row ``reproduces`` if no published number differs from ours by more than chance explains, and ``does not`` if one
does. ``cannot tell``: the row has no published number, or departs from its setting, or our own 95 % interval of a
number is wider than 10 points, in which almost any number lies. ``not run``: it was not run on any task.

Tests are over the whole row, so that a faithful reimplementation is called ``does not`` in about 5 % of all cases,
however many numbers it has. Were each tested alone, it would be 34 % with 8 independent numbers, and 56 % with 16. A
number has a two-sided z test of ours minus the published one, and Hochberg's step-up procedure (Biometrika 75, 1988)
corrects over the numbers of the row. Holm's and Bonferroni's need one number that is far off by itself: with four
numbers of 35 % on 1,000 questions, which the published run had too, a system that is 5 points off in all four would
pass. Hochberg's finds it, since it asks less of numbers that are all off. It needs numbers that do not depend on each
other, as those of several tasks, or whose absolute differences rise and fall together, as scores of the same answers.

The standard error of a difference has two parts. Ours is that of our interval. That of the published run is counted if
its number of questions is known (``published_questions``): the spread over questions is taken to be ours, and the two
runs to be independent. Two runs on the same questions depend on each other, and no paper prints what is needed to say
how much; their difference varies less than is assumed. So ``reproduces`` is weak evidence: chance may explain the
difference, which does not show that there is none. Beside it stands how many numbers lie within a margin of ours
(``margin`` of the table, 2 points). If the number of questions is not known, the published number counts as exact, and
``does not`` is said in more than 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from lm_eval_rag.harness.report.stats import LEVEL, Interval
from lm_eval_rag.harness.scoring import METRICS

REPRODUCES, DOES_NOT, CANNOT_TELL, NOT_RUN = VERDICTS = ("reproduces", "does not", "cannot tell", "not run")
WIDEST = 10.0  # points (of a perplexity: units)
MARGIN = 2.0  # the same
ALPHA = 0.05  # for all numbers of a row
HALF = 0.05  # papers print one decimal
ROUNDING = 1e-9  # 35.1 and 33.1 are 2 points apart
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Compared:
    """One published number with ours, on the scale on which it is printed.

    Args:
        ours: Mean.
        low: Lower end of its 95 % interval.
        high: Upper end.
        paper: The published number.
        error: Standard error of the difference of the two.
        reach: How far apart they may be by chance, by the test of the whole row.
    """

    task: str
    metric: str
    ours: float
    low: float
    high: float
    paper: float
    error: float = 0.0
    reach: float = HALF

    @property
    def apart(self) -> float:
        """The absolute difference."""
        return abs(self.ours - self.paper)

    @property
    def p(self) -> float:
        """Two-sided, of the hypothesis that both runs have the same expected score; rounding is not held against it."""
        gap = max(0.0, self.apart - HALF)
        if not gap or not self.error:
            return float(not gap)
        return math.erfc(gap / self.error / math.sqrt(2))

    @property
    def verdict(self) -> str:
        """Of this number, in the test of the whole row."""
        if self.apart > self.reach:
            return DOES_NOT
        return REPRODUCES if self.high - self.low <= WIDEST else CANNOT_TELL


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """The verdict on one row.

    Args:
        why: What it rests on, in words; "" if the numbers say it.
        compared: Every number that was compared.
        margin: How far apart two numbers may be that count as close.
    """

    verdict: str
    why: str = ""
    compared: tuple[Compared, ...] = ()
    margin: float = MARGIN

    @property
    def agreement(self) -> str:
        """``3 of 4 agree, 2 within 2 points``; "" if nothing was compared."""
        if not self.compared:
            return ""
        agree = sum(one.apart <= one.reach for one in self.compared)
        close = sum(one.apart <= self.margin + ROUNDING for one in self.compared)
        return f"{agree} of {len(self.compared)} agree, {close} within {points(self.margin)}"


def points(margin: float) -> str:
    """``2 points``."""
    return f"{margin:g} point{'' if margin == 1 else 's'}"


def compared_of(cells: Mapping[str, Any], asked: Mapping[str, int] | None = None) -> tuple[Compared, ...]:
    """What can be compared among the cells of a line: task -> its scores; tested together.

    Args:
        asked: Task -> number of questions of the published run, where it is known.
    """
    return compared_together(
        _compared(task, metric, score.ours, score.paper, (asked or {}).get(task))
        for task, own in cells.items()
        for metric, score in own.scores.items()
        if score.ours is not None and score.paper is not None
    )


def _compared(task: str, metric: str, ours: Interval, paper: float, asked: int | None) -> Compared:
    scale = 100 if METRICS[metric].unit == "share" else 1
    low = ours.mean if ours.low is None else ours.low
    high = ours.mean if ours.high is None else ours.high
    error = (high - low) / (2 * NORMAL.inv_cdf((1 + LEVEL) / 2))
    if not error and scale == 100:  # all questions have the same score: by the spread that the published number allows
        share = min(1.0, max(0.0, paper / 100))
        error = math.sqrt(share * (1 - share) / ours.n)
    error *= math.sqrt(1 + ours.n / asked) if asked else 1.0
    return Compared(task, metric, scale * ours.mean, scale * low, scale * high, paper, scale * error)


def compared_together(numbers: Iterable[Compared]) -> tuple[Compared, ...]:
    """The numbers of a row, each with its ``reach`` in the test of all of them."""
    compared = tuple(numbers)
    if not compared:
        return ()
    z = NORMAL.inv_cdf(1 - level([one.p for one in compared]) / 2)
    return tuple(replace(one, reach=HALF + z * one.error) for one in compared)


def level(p_values: Sequence[float]) -> float:
    """The level of each single test by Hochberg's procedure: two numbers differ if their p value is not above it.

    It is ``ALPHA`` / j for the first j such that the j-th largest p value is at most ``ALPHA`` / j. Without such a j it
    is ``ALPHA`` / n, and none differ.
    """
    largest_first = enumerate(sorted(p_values, reverse=True), start=1)
    return next((ALPHA / j for j, p in largest_first if p <= ALPHA / j), ALPHA / len(p_values))


def row_verdict(
    compared: Iterable[Compared], *, run: bool, differs: str = "", limit: int | None = None, margin: float = MARGIN
) -> RowVerdict:
    """The verdict on a row.

    Args:
        compared: Its numbers, tested together.
        run: Whether it was run on any task.
        differs: How it departs from the setting of its published numbers; "" if it does not.
        limit: Number of questions that a trial was limited to; None for a whole run.
        margin: How far apart two numbers may be that count as close; in points, of a perplexity in its units.
    """
    numbers = tuple(compared)
    if not run:
        return RowVerdict(NOT_RUN)
    if limit is not None:
        return RowVerdict(CANNOT_TELL, f"a trial with {limit} questions", numbers, margin)
    if differs or not numbers:
        return RowVerdict(CANNOT_TELL, differs or "no published number", numbers, margin)
    verdicts = {one.verdict for one in numbers}
    verdict = next(one for one in (DOES_NOT, CANNOT_TELL, REPRODUCES) if one in verdicts)
    return RowVerdict(verdict, "", numbers, margin)
