"""Ranks with tie groups: entries whose difference is not significant share a rank.

All pairs of entries of one task are compared on the same questions (exact McNemar test, or a paired bootstrap where
scores are not 0 or 1), and the p values of the task are corrected by Holm's method. Entries are then grouped from the
best on: an entry that is not significantly worse than the first of the group shares its rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np

from lm_eval_rag.harness.report.stats import DRAWS, LEVEL, Difference, Interval, holm, interval, paired

ALPHA = 1 - LEVEL
Values = Mapping[str, float]  # question id -> score


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


def ranked(
    scores: Mapping[str, Values], higher_is_better: bool = True, seed: int = 0
) -> tuple[list[Standing], list[Pair]]:
    """The entries of one task by one metric, best first, ties by name; and all their pairs.

    Args:
        scores: Entry -> question -> score, all over the same questions.

    Raises:
        ValueError: Two entries were scored on different questions.
    """
    if len({frozenset(values) for values in scores.values()}) > 1:
        raise ValueError("entries of one ranking are scored on the same questions")
    ids = sorted(next(iter(scores.values()), {}))
    columns = {entry: [values[id] for id in ids] for entry, values in scores.items()}
    means = {entry: fmean(column) for entry, column in columns.items()}
    order = sorted(columns, key=lambda entry: (-means[entry] if higher_is_better else means[entry], entry))
    tested = [(a, b, paired(columns[a], columns[b], seed=seed)) for a, b in combinations(order, 2)]
    p_values = holm([difference.p for *_, difference in tested])
    pairs = [Pair(*one, p) for one, p in zip(tested, p_values, strict=True)]
    differ = {(pair.first, pair.second) for pair in pairs if pair.p_holm < ALPHA}
    standings: list[Standing] = []
    leader, rank = "", 0
    for place, entry in enumerate(order, 1):
        if not leader or (leader, entry) in differ:
            leader, rank = entry, place
        better = sum(worse == entry for _, worse in differ)
        worse = sum(better == entry for better, _ in differ)
        score = interval(columns[entry], seed=seed)
        standings.append(Standing(entry, score, rank, 1 + better, len(order) - worse))
    return standings, pairs


def overall(tasks: Sequence[Mapping[str, Values]], seed: int = 0) -> dict[str, Interval]:
    """Entry -> mean over tasks of its mean scores, with an interval from resampled questions of each task.

    Entries that lack a task are left out: a missing task is missing, never 0.
    """
    if not tasks:
        return {}
    complete = set.intersection(*(set(task) for task in tasks))
    results = {}
    for entry in sorted(complete):
        mean = fmean(fmean(task[entry].values()) for task in tasks)
        draws = np.mean([_resampled(list(task[entry].values()), seed + i) for i, task in enumerate(tasks)], axis=0)
        low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
        n = sum(len(task[entry]) for task in tasks)
        flat = bool(np.all(draws == draws[0]))
        results[entry] = Interval(mean, None if flat else float(low), None if flat else float(high), n)
    return results


def _resampled(values: Sequence[float], seed: int) -> np.ndarray:
    """Means of resamples, in the order in which they are drawn, so that tasks are combined independently."""
    distinct, counts = np.unique(values, return_counts=True)
    rng = np.random.default_rng(seed)
    drawn: np.ndarray = rng.multinomial(len(values), counts / len(values), size=DRAWS) @ distinct / len(values)
    return drawn
