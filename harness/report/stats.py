"""Intervals and tests for scores of questions: bootstrap of a mean, paired bootstrap, exact McNemar, Holm.

The bootstrap resamples questions. The counts of each distinct value in a resample with replacement follow a multinomial
distribution, so they are drawn directly: this is exact, and fast because scores have few distinct values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
LEVEL = 0.95
CELLS = 4_000_000  # maximum size of a block of draws; limits memory to 32 MB

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its bootstrap interval.

    Args:
        mean: Mean over the scored questions.
        low: Lower end; None if all values are equal or there is only one, since resamples do not vary.
        high: Upper end, or None.
        n: Number of scored questions.
    """

    mean: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference of means on the same questions.

    Args:
        interval: Mean difference with its interval.
        p: Two-sided p value of the null hypothesis of no difference.
        test: ``mcnemar`` or ``bootstrap``.
    """

    interval: Interval
    p: float
    test: str


def bootstrap_means(values: Sequence[float] | Floats, draws: int = DRAWS, seed: int = 0) -> Floats:
    """The sorted means of ``draws`` resamples of the values (at least one); shape (draws,)."""
    distinct, counts = np.unique(values, return_counts=True)
    rng = np.random.default_rng(seed)
    block = max(1, CELLS // len(distinct))
    total = int(counts.sum())
    parts = [
        rng.multinomial(total, counts / total, size=min(block, draws - start)) @ distinct / total
        for start in range(0, draws, block)
    ]
    return np.sort(np.concatenate(parts))


def interval(values: Sequence[float] | Floats, draws: int = DRAWS, seed: int = 0, level: float = LEVEL) -> Interval:
    """The mean and its percentile bootstrap interval (Efron and Tibshirani 1993, section 13.3)."""
    array = np.asarray(values)
    mean = math.fsum(array) / len(array)
    if np.all(array == array[0]):
        return Interval(mean, None, None, len(array))
    return Interval(mean, *_ends(bootstrap_means(array, draws, seed), level), len(array))


def paired(ours: Sequence[float], theirs: Sequence[float], draws: int = DRAWS, seed: int = 0) -> Difference:
    """The mean of ``ours - theirs`` with its bootstrap interval and p value.

    If all scores are 0 or 1, p is McNemar's. Otherwise it is twice the share of resampled means on the rarer side of 0,
    where the observed sample counts as one more resample (Davison and Hinkley 1997, section 4.2); so p is at least
    2 / (draws + 1).
    """
    first, second = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    differences = first - second
    mean_difference = interval(differences, draws, seed)
    if np.isin(np.concatenate([first, second]), (0.0, 1.0)).all():
        return Difference(
            mean_difference, mcnemar(int((differences > 0).sum()), int((differences < 0).sum())), "mcnemar"
        )
    if not differences.any():
        return Difference(mean_difference, 1.0, "bootstrap")
    means = bootstrap_means(differences, draws, seed)
    # Means that are 0 in exact arithmetic must count on both sides despite rounding.
    slack = 1e-12 * float(np.abs(differences).max())
    side = min(int((means <= slack).sum()), int((means >= -slack).sum()))
    return Difference(mean_difference, min(1.0, 2 * (side + 1) / (draws + 1)), "bootstrap")


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided McNemar p value: a binomial test with 1/2 on the questions that exactly one run has right."""
    discordant = only_first + only_second
    tail = ways = 1
    for i in range(min(only_first, only_second)):
        ways = ways * (discordant - i) // (i + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << discordant))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values (1979), in input order; they control the family-wise error rate."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return adjusted


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value such that at least ``share`` of all values are at most as large (nearest rank), or NaN."""
    ordered: list[float] = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def _ends(means: Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
