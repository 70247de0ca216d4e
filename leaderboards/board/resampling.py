"""Bootstrap intervals of all entries of a task at once: every entry meets the same resamples of questions.

So a board of 500 entries draws no more than one of two. The intervals are those of
:func:`lm_eval_rag.harness.report.stats.interval`, up to the chance of the draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lm_eval_rag.harness.report.clusters import Labels, clustered, numbered
from lm_eval_rag.harness.report.stats import DRAWS, LEVEL, Interval

Floats = NDArray[np.float64]
Means = NDArray[np.float32]
BLOCK = 1_000  # resamples whose counts are multiplied at once


class Resamples:
    """Resamples of the questions of one task, or of its clusters of questions.

    Args:
        n: Number of questions.
        clusters: Keys by which questions are clustered, as labels of the questions: whole clusters are resampled, once
            by each key; () resamples single questions.
        draws: Number of resamples.
        seed: Of the resamples.
    """

    def __init__(self, n: int, clusters: Sequence[Labels] = (), draws: int = DRAWS, seed: int = 0) -> None:
        self.n = n
        self.draws = draws
        self.clustered = bool(clusters)
        self.keys = [_codes(labels) for labels in clusters] or [np.arange(n)]
        rng = np.random.default_rng(seed)
        self._counts = [_counts(int(codes.max(initial=-1)) + 1, draws, rng) for codes in self.keys]

    def means(self, values: Floats) -> list[Means]:
        """For each key the means of the resamples.

        Args:
            values: Of questions in columns, NaN where there is none; shape (n, columns).

        Returns:
            Shapes (columns, draws); NaN where a resample has no question with a value.
        """
        known = ~np.isnan(values)
        return [
            _ratios(counts, _sums(codes, np.where(known, values, 0.0)), _sums(codes, _distinct(known)))
            for codes, counts in zip(self.keys, self._counts, strict=True)
        ]

    def intervals(self, values: Floats) -> list[Interval]:
        """The mean of each column with its percentile interval, the widest over the keys.

        Args:
            values: As for :meth:`means`; every column has a value.
        """
        averages, sizes = np.nanmean(values, axis=0), (~np.isnan(values)).sum(axis=0)
        flat = np.nanmax(values, axis=0) == np.nanmin(values, axis=0)
        by_key = []
        for codes, means in zip(self.keys, self.means(values), strict=True):
            low, high = ends(means)
            if self.clustered:
                factors = np.array([_factor(one, codes, own) for one, own in zip(values.T, means, strict=True)])
                bounds = (0.0, 1.0) if np.nanmin(values) >= 0 and np.nanmax(values) <= 1 else (-np.inf, np.inf)
                low = np.maximum(bounds[0], averages - factors * (averages - low))
                high = np.minimum(bounds[1], averages + factors * (high - averages))
            by_key.append((low, high))
        low, high = widest(by_key)
        return [
            Interval(float(mean), None, None, int(n))
            if same or not a < b
            else Interval(float(mean), float(a), float(b), int(n))
            for mean, a, b, n, same in zip(averages, low, high, sizes, flat, strict=True)
        ]


def _factor(values: Floats, codes: NDArray[np.int64], means: Means) -> float:
    """By how much an interval of resampled clusters is widened where clusters are few or unequal."""
    known = ~np.isnan(values)
    one, spread = clustered(values[known], tuple(codes[known].tolist())), float(np.nanstd(means))
    return one.reach(LEVEL) / spread if one is not None and spread else 0.0


def ends(means: Means) -> tuple[Floats, Floats]:
    """The ends of the percentile intervals of rows of resampled means; NaN are left out.

    Args:
        means: Shape (rows, draws).
    """
    if np.isnan(means).any():
        low, high = np.nanquantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
        return low, high
    first = round((1 - LEVEL) / 2 * (means.shape[1] - 1))
    places = (first, means.shape[1] - 1 - first)
    parted = np.partition(means, places, axis=1)
    return parted[:, places[0]].astype(np.float64), parted[:, places[1]].astype(np.float64)


def widest(intervals: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """For each row the widest of several intervals."""
    lows, highs = (np.stack(one) for one in zip(*intervals, strict=True))
    chosen = (highs - lows).argmax(axis=0)[None]
    return np.take_along_axis(lows, chosen, 0)[0], np.take_along_axis(highs, chosen, 0)[0]


def _codes(labels: Labels) -> NDArray[np.int64]:
    return numbered(tuple(labels))[0].astype(np.int64)


def _counts(clusters: int, draws: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """How often each cluster is in each resample; shape (draws, clusters)."""
    counts = np.empty((draws, clusters), dtype=np.uint8)
    for draw in range(draws):
        counts[draw] = np.minimum(np.bincount(rng.integers(0, clusters, clusters), minlength=clusters), 255)
    return counts


def _sums(codes: NDArray[np.int64], values: Floats) -> Means:
    """Sums of the questions of each cluster; shape (clusters, columns)."""
    sums = np.zeros((int(codes.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, codes, values)
    return sums.astype(np.float32)


def _distinct(known: NDArray[np.bool_]) -> Floats:
    """The columns of a mask, or one of them if all are equal."""
    return (known[:, :1] if (known == known[:, :1]).all() else known).astype(np.float64)


def _ratios(counts: NDArray[np.uint8], sums: Means, sizes: Means) -> Means:
    """Sums over sizes in every resample; shape (columns, draws)."""
    ratios = np.empty((sums.shape[1], len(counts)), dtype=np.float32)
    for start in range(0, len(counts), BLOCK):
        weights = counts[start : start + BLOCK].astype(np.float32)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios[:, start : start + BLOCK] = ((weights @ sums) / (weights @ sizes)).T
    return ratios
