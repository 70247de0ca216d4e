"""Intervals and tests for scores of questions: bootstrap of a mean, paired bootstrap, exact McNemar, Holm.

The questions are what is resampled. Resampling n questions with replacement and counting how often each distinct value
is drawn is a multinomial draw, so it is drawn as one: exact, and cheap, since scores take few values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
LEVEL = 0.95
CELLS = 4_000_000  # of one block of draws, which bounds memory at 32 MB

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its bootstrap interval.

    Args:
        mean: Of the scored questions.
        low: Lower end; None when all values are equal or there is one alone, where resampling can say nothing.
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
        interval: Of the mean of the differences.
        p: Two-sided p value of no difference.
        test: ``mcnemar`` or ``bootstrap``.
    """

    interval: Interval
    p: float
    test: str


def bootstrap_means(values: Sequence[float] | Floats, draws: int = DRAWS, seed: int = 0) -> Floats:
    """The means of ``draws`` resamples of the values (at least one); shape (draws,), sorted."""
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
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
    array = np.asarray(values, dtype=np.float64)
    mean = math.fsum(array) / len(array)
    if np.all(array == array[0]):
        return Interval(mean, None, None, len(array))
    return Interval(mean, *_ends(bootstrap_means(array, draws, seed), level), len(array))


def paired(ours: Sequence[float], theirs: Sequence[float], draws: int = DRAWS, seed: int = 0) -> Difference:
    """The mean of ``ours - theirs`` with its bootstrap interval and p value.

    p is McNemar's when all scores are 0 or 1; else it is twice the smaller share of resampled means on one side of 0,
    each share with the observed sample added (Davison and Hinkley 1997, section 4.2), so never below 2 / (draws + 1).
    """
    first, second = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    differences = first - second
    found = interval(differences, draws, seed)
    if np.isin(np.concatenate([first, second]), (0.0, 1.0)).all():
        return Difference(found, mcnemar(int((differences > 0).sum()), int((differences < 0).sum())), "mcnemar")
    if not differences.any():
        return Difference(found, 1.0, "bootstrap")
    means = bootstrap_means(differences, draws, seed)
    # Sums that are 0 in exact arithmetic must not fall on one side by rounding.
    slack = 1e-12 * float(np.abs(differences).max())
    side = min(int((means <= slack).sum()), int((means >= -slack).sum()))
    return Difference(found, min(1.0, 2 * (side + 1) / (draws + 1)), "bootstrap")


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided McNemar p value: a fair coin's, over the questions on which just one of the two is right."""
    discordant = only_first + only_second
    tail = ways = 1
    for i in range(min(only_first, only_second)):
        ways = ways * (discordant - i) // (i + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << discordant))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values (1979), in the order given; they hold the family-wise error rate."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return adjusted


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value with at least ``share`` of all values at or below it (nearest rank); no values gives NaN."""
    ordered: list[float] = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def _ends(means: Floats, level: float) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
