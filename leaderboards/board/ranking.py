"""Ranks with tie groups: entries whose difference is not significant share a rank.

All pairs of entries are compared on the same questions, and their p values are corrected by Holm's method. Entries are
then grouped from the best on: an entry that is not significantly worse than the first of the group shares its rank.

The interval of a difference is normal, with the standard error of the difference over the resamples. Scores of 0 and 1
on questions that are not clustered are compared by McNemar's exact test, others by the same standard error. The share
of resamples on one side of 0 would not do: with 10,000 resamples it is at least 1 / 10,001, and Holm's correction for
the 4,950 pairs of 100 entries would leave no difference significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from lm_eval_rag.harness.report.stats import LEVEL, Difference, Interval, holm
from lm_eval_rag.leaderboards.board.resampling import Floats, Means, Resamples, ends, widest

ALPHA = 1 - LEVEL
WIDTH = NormalDist().inv_cdf((1 + LEVEL) / 2)  # standard errors from the middle of an interval to its ends
ROUNDING = 1e-9  # a smaller standard error is 0 in exact arithmetic


@dataclass(frozen=True, slots=True)
class Standing:
    """One entry in one ranking.

    Args:
        rank: 1 is best; equal in a tie group.
        best: The best rank that its significant differences allow: 1 and the entries that are significantly better.
        worst: The worst: the number of entries minus those that are significantly worse.
    """

    entry: str
    score: Interval
    rank: int
    best: int
    worst: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entries of one ranking: ``first`` (the better one, or equal) minus ``second``; p is Holm's for the task."""

    first: str
    second: str
    difference: Difference
    p_holm: float


class Scores:
    """The scores of several entries by one metric, with everything that compares them.

    Args:
        names: Of the entries.
        averages: The entry's mean score; shape (entries,).
        means: Means of resamples for each key of the clusters; shapes (entries, draws).
        values: Scores of the questions, for McNemar's test; shape (questions, entries); None where it does not apply.
        n: Number of questions.
    """

    def __init__(
        self, names: Sequence[str], averages: Floats, means: Sequence[Means], values: Floats | None, n: int
    ) -> None:
        self.names, self.averages, self.means, self.n = list(names), averages, list(means), n
        self._place = {name: place for place, name in enumerate(self.names)}
        exact = values is not None and np.isin(values, (0.0, 1.0)).all()
        self._right = values.astype(np.float32) if values is not None and exact else None

    @staticmethod
    def of(columns: Mapping[str, Floats], resamples: Resamples) -> Scores:
        """The scores of one task.

        Args:
            columns: Entry -> scores of the questions, in one order.

        Raises:
            ValueError: The entries were scored on different questions.
        """
        if len({(len(column), np.isnan(column).tobytes()) for column in columns.values()}) > 1:
            raise ValueError("entries of one ranking are scored on the same questions")
        values = np.column_stack(list(columns.values())) if columns else np.zeros((resamples.n, 0))
        means = resamples.means(values) if columns else []
        averages = np.array([math.fsum(column[~np.isnan(column)]) for column in columns.values()])
        n = int((~np.isnan(values[:, 0])).sum()) if columns else 0
        return Scores(list(columns), averages / max(n, 1), means, None if resamples.clustered else values, n)

    @staticmethod
    def mean_of(tasks: Sequence[Scores]) -> Scores:
        """The mean over tasks, of the entries that all tasks have: a missing task is missing, never 0.

        Questions of different tasks are resampled independently. Of several keys, each task brings the one that gives
        the widest intervals.
        """
        names = [name for name in tasks[0].names if all(name in task._place for task in tasks)] if tasks else []
        if not names:
            return Scores([], np.zeros(0), [], None, 0)
        rows = [[task._place[name] for name in names] for task in tasks]
        averages = np.mean([task.averages[own] for task, own in zip(tasks, rows, strict=True)], axis=0)
        drawn = [max(task.means, key=lambda means: float(means.std(axis=1).mean())) for task in tasks]
        means = np.mean([one[own] for one, own in zip(drawn, rows, strict=True)], axis=0)
        return Scores(names, averages, [means], None, sum(task.n for task in tasks))

    def of_these(self, names: Sequence[str]) -> Scores:
        """The same for some of the entries."""
        rows = [self._place[name] for name in names]
        right = None if self._right is None else self._right[:, rows].astype(np.float64)
        return Scores(names, self.averages[rows], [means[rows] for means in self.means], right, self.n)

    def intervals(self) -> dict[str, Interval]:
        """Entry -> mean with interval."""
        if not self.names:
            return {}
        low, high = widest([ends(means) for means in self.means])
        return {
            name: Interval(float(self.averages[i]), *_known(low[i], high[i]), self.n)
            for i, name in enumerate(self.names)
        }

    def differences(self, name: str, others: Sequence[str]) -> list[Difference]:
        """One entry minus each of some others, on the same questions."""
        if not others:
            return []
        own, rows = self._place[name], [self._place[other] for other in others]
        apart, errors = self.averages[own] - self.averages[rows], self._errors[own, rows]
        p_values, test = self._p_values(own, rows, apart)
        return [
            Difference(
                Interval(float(mean), *_known(mean - WIDTH * error, mean + WIDTH * error), self.n), float(p), test
            )
            for mean, error, p in zip(apart, errors, p_values, strict=True)
        ]

    @cached_property
    def _errors(self) -> Floats:
        """Standard errors of differences over the resamples, the largest over the keys; shape (entries, entries)."""
        found = []
        for means in self.means:
            covariance = np.atleast_2d(np.cov(means.astype(np.float64)))
            own = np.diag(covariance)
            found.append(np.sqrt(np.maximum(own[:, None] + own - 2 * covariance, 0.0)))
        errors = np.max(found, axis=0)
        return np.asarray(np.where(errors > ROUNDING, errors, 0.0))

    def _p_values(self, own: int, rows: Sequence[int], apart: Floats) -> tuple[Iterable[float], str]:
        if self._right is not None:
            ours, theirs = self._right[:, own], self._right[:, list(rows)]
            both = ours @ theirs
            return mcnemar_of(np.rint(ours.sum() - both), np.rint(theirs.sum(axis=0) - both)), "mcnemar"
        return [_tail(mean, self._errors[own, row]) for mean, row in zip(apart, rows, strict=True)], "bootstrap"


def ranked(scores: Scores, higher_is_better: bool = True) -> tuple[list[Standing], list[Pair]]:
    """The entries by one metric, best first, ties by name; and all their pairs."""
    means = dict(zip(scores.names, scores.averages, strict=True))
    order = sorted(means, key=lambda entry: (-means[entry] if higher_is_better else means[entry], entry))
    tested = [
        (first, second, difference)
        for place, first in enumerate(order)
        for second, difference in zip(
            order[place + 1 :], scores.differences(first, order[place + 1 :]), strict=True
        )
    ]  # fmt: skip
    p_values = holm([difference.p for *_, difference in tested])
    pairs = [Pair(*one, p) for one, p in zip(tested, p_values, strict=True)]
    differ = {(pair.first, pair.second) for pair in pairs if pair.p_holm < ALPHA}
    better, worse = dict.fromkeys(order, 0), dict.fromkeys(order, 0)
    for first, second in differ:
        better[second] += 1
        worse[first] += 1
    intervals = scores.intervals()
    standings: list[Standing] = []
    leader, rank = "", 0
    for place, entry in enumerate(order, 1):
        if not leader or (leader, entry) in differ:
            leader, rank = entry, place
        standings.append(Standing(entry, intervals[entry], rank, 1 + better[entry], len(order) - worse[entry]))
    return standings, pairs


def mcnemar_of(only_first: Floats, only_second: Floats) -> list[float]:
    """McNemar's exact two-sided p values (:func:`lm_eval_rag.harness.report.stats.mcnemar`) of many pairs at once."""
    discordant = (only_first + only_second).astype(np.int64)
    fewer = np.minimum(only_first, only_second).astype(np.int64)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(discordant.max(initial=0)) + 1)))])
    p_values: NDArray[np.float64] = np.ones(len(discordant))
    for n in np.unique(discordant[discordant > 0]):
        chosen = discordant == n
        ways = np.arange(int(fewer[chosen].max()) + 1)
        logs = factorials[n] - factorials[ways] - factorials[n - ways] - n * math.log(2)
        p_values[chosen] = np.minimum(1.0, 2 * np.cumsum(np.exp(logs))[fewer[chosen]])
    return [float(p) for p in p_values]


def _tail(mean: float, error: float) -> float:
    """The two-sided p value of a mean of normal distribution; 1 if it is 0 or the resamples do not vary."""
    return math.erfc(abs(mean) / error / math.sqrt(2)) if error > 0 and mean else 1.0


def _known(low: float, high: float) -> tuple[float | None, float | None]:
    """The ends of an interval; none if the resamples do not vary."""
    return (float(low), float(high)) if low < high else (None, None)
