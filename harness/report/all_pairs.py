"""Paired differences of many runs on the same questions at once: each resample of clusters is drawn once for all runs.

The p values are those of :func:`~lm_eval_rag.harness.report.stats.paired`; the intervals are the same up to the chance
of the draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from lm_eval_rag.harness.report.clusters import Clusters, Floats, clustered, numbered
from lm_eval_rag.harness.report.stats import CELLS, CLUSTERED, DRAWS, LEVEL, Difference, Interval, p_of, seen

Pair = tuple[int, int]


def all_pairs(columns: Floats, clusters: Clusters, draws: int = DRAWS, seed: int = 0) -> dict[Pair, Difference]:
    """The difference of every two columns, the first minus the second, with its interval and p value.

    Args:
        columns: Scores; shape (questions, runs).
        clusters: For each key one label per question; at least one key.
    """
    n, runs = columns.shape
    means, inside = columns.mean(axis=0), columns.min() >= 0 and columns.max() <= 1
    bounds = (-1.0, 1.0) if inside else (-math.inf, math.inf)
    pairs = list(combinations(range(runs), 2))
    widest: dict[Pair, tuple[float, float]] = {}
    largest: dict[Pair, float] = {}
    for labels in clusters:
        drawn = resampled(columns, labels, draws, seed)
        for pair in pairs if drawn is not None else ():
            first, second = pair
            differences = columns[:, first] - columns[:, second]
            one = clustered(differences, labels)
            if drawn is None or one is None:
                continue
            one, mean = seen(one), float(means[first] - means[second])
            largest[pair] = max(largest.get(pair, 0.0), p_of(mean, one))
            resamples = drawn[first] - drawn[second]
            if np.ptp(differences) == 0 or not (spread := float(resamples.std())):
                continue
            low, high = _quantiles(resamples)
            factor = one.reach(LEVEL) / spread
            ends = max(bounds[0], mean - factor * (mean - low)), min(bounds[1], mean + factor * (high - mean))
            if pair not in widest or ends[1] - ends[0] > widest[pair][1] - widest[pair][0]:
                widest[pair] = ends
    compared = {}
    for i, j in pairs:
        bottom, top = widest.get((i, j), (None, None))
        mean_difference = Interval(float(means[i] - means[j]), bottom, top, n)
        compared[i, j] = Difference(mean_difference, largest.get((i, j), 1.0), CLUSTERED)
    return compared


def resampled(columns: Floats, labels: Sequence[object], draws: int = DRAWS, seed: int = 0) -> Floats | None:
    """The means of all columns in each resample of whole clusters; shape (runs, draws). None with a single cluster."""
    codes, number = numbered(tuple(labels))
    if number < 2:
        return None
    sums = np.zeros((number, columns.shape[1] + 1), dtype=np.float32)
    np.add.at(sums, codes, np.column_stack([columns, np.ones(len(columns))]))  # the last column is the size
    rng, shares = np.random.default_rng(seed), np.full(number, 1 / number)
    block = max(1, CELLS // number)
    parts = [
        rng.multinomial(number, shares, size=min(block, draws - start)).astype(np.float32) @ sums
        for start in range(0, draws, block)
    ]
    totals = np.concatenate(parts).T.astype(np.float64)
    means: Floats = totals[:-1] / totals[-1]
    return means


def _quantiles(resamples: Floats) -> tuple[float, float]:
    """The ends of the level's central part."""
    low, high = np.quantile(resamples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
