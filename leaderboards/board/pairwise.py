"""Paired tests of one entry with many others at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lm_eval_rag.harness.report.clusters import Labels, clustered, student_quantile, student_tail
from lm_eval_rag.harness.report.stats import CLUSTERED, LEVEL, Difference, Interval, p_of, seen
from lm_eval_rag.leaderboards.board.resampling import Floats

DIGITS = 3  # of degrees of freedom in the quantile of an interval: far finer than what is shown of it


@dataclass(frozen=True, slots=True)
class Spreads:
    """Of several differences: standard error, degrees of freedom, p value; all of shape (differences,)."""

    errors: Floats
    freedoms: Floats
    p_values: Floats
    test: str

    def mean_with(self, others: Sequence[Spreads]) -> Spreads:
        """Of the mean over independent tasks: variances add, with the degrees of freedom of Welch and Satterthwaite.

        The p values are set by :meth:`differences`.
        """
        tasks = [self, *others]
        variances = np.array([one.errors**2 for one in tasks]) / len(tasks) ** 2
        parts = (variances**2 / np.array([one.freedoms for one in tasks])).sum(axis=0)
        total = variances.sum(axis=0)
        freedoms = np.divide(total**2, parts, out=np.ones_like(total), where=parts > 0)
        return Spreads(np.sqrt(total), freedoms, np.full(len(total), np.nan), "t over tasks")

    def differences(self, means: Floats, n: int) -> list[Difference]:
        """The differences of these means over n questions."""
        results = []
        for mean, error, freedom, p in zip(means, self.errors, self.freedoms, self.p_values, strict=True):
            half = error * _quantile(float(f"{freedom:.{DIGITS}g}")) if error else 0.0
            low, high = (float(mean - half), float(mean + half)) if half else (None, None)
            p = _tail(mean, error, freedom) if math.isnan(p) else p
            results.append(Difference(Interval(float(mean), low, high, n), float(p), self.test))
        return results


@dataclass(frozen=True)
class Paired:
    """Scores of several entries on the same questions.

    Args:
        values: Shape (questions, entries).
        clusters: For each key of clusters one label per question.
    """

    values: Floats
    clusters: Sequence[Labels] = ()

    def row(self, own: int, others: Sequence[int]) -> Spreads:
        """One entry minus each of some others."""
        apart = self.values[:, own, None] - self.values[:, list(others)]
        if self.clusters:
            return self._by_clusters(apart)
        n = len(apart)
        errors = apart.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.zeros(len(others))
        freedoms = np.full(len(others), max(1.0, n - 1.0))
        if np.isin(self.values, (0.0, 1.0)).all():
            p_values = mcnemar_of((apart > 0).sum(axis=0), (apart < 0).sum(axis=0))
            return Spreads(errors, freedoms, p_values, "mcnemar")
        return Spreads(errors, freedoms, np.full(len(others), np.nan), "paired t")

    def _by_clusters(self, apart: Floats) -> Spreads:
        """As :func:`~lm_eval_rag.harness.report.stats.paired` does it: the largest p and the widest interval."""
        count = apart.shape[1]
        errors, freedoms, p_values, reaches = (np.zeros(count), np.ones(count), np.zeros(count), np.zeros(count))
        known = np.zeros(count, dtype=bool)
        for labels in self.clusters:
            for i in range(count):
                one = clustered(apart[:, i], labels)
                if one is None:
                    continue
                one, known[i] = seen(one), True
                one = replace(one, error=one.error if one.error > 1e-12 else 0.0)
                p_values[i] = max(p_values[i], p_of(float(apart[:, i].mean()), one))
                reach = one.error * _quantile(float(f"{one.freedom:.{DIGITS}g}"))
                if reach >= reaches[i]:
                    errors[i], freedoms[i], reaches[i] = one.error, one.freedom, reach
        return Spreads(errors, freedoms, np.where(known, p_values, 1.0), CLUSTERED)


def mcnemar_of(only_first: NDArray[np.int64], only_second: NDArray[np.int64]) -> Floats:
    """McNemar's exact two-sided p values (:func:`lm_eval_rag.harness.report.stats.mcnemar`) of many pairs at once."""
    discordant, fewer = only_first + only_second, np.minimum(only_first, only_second)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(discordant.max(initial=0)) + 1)))])
    p_values: Floats = np.ones(len(discordant))
    for n in np.unique(discordant[discordant > 0]):
        chosen = discordant == n
        ways = np.arange(int(fewer[chosen].max()) + 1)
        logs = factorials[n] - factorials[ways] - factorials[n - ways] - n * math.log(2)
        p_values[chosen] = np.minimum(1.0, 2 * np.cumsum(np.exp(logs))[fewer[chosen]])
    return p_values


@lru_cache(maxsize=4096)
def _quantile(freedom: float) -> float:
    return student_quantile(LEVEL, max(1.0, freedom))


def _tail(mean: float, error: float, freedom: float) -> float:
    """The two-sided p value of a mean; 1 if it is 0, or if nothing varies."""
    return student_tail(abs(mean) / error, freedom) if error and mean else 1.0
