"""Ranks with tie groups: entries whose difference is not significant share a rank.

All pairs of entries are compared on the same questions, and their p values are corrected by Holm's method. Entries are
then grouped from the best on: an entry that is not significantly worse than the first of the group shares its rank.

The tests are those of :func:`lm_eval_rag.harness.report.stats.paired`, with one exception: scores that are not 0 or 1,
of questions that are not clustered, are compared by a paired t test. The p value of the bootstrap is at least
2 / 10,001, and Holm's correction for the 4,950 pairs of 100 entries would leave no difference significant. Intervals of
differences are those of the same standard errors and Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lm_eval_rag.harness.report.clusters import Labels
from lm_eval_rag.harness.report.stats import LEVEL, Difference, holm
from lm_eval_rag.leaderboards.board.pairwise import Paired
from lm_eval_rag.leaderboards.board.resampling import Floats

ALPHA = 1 - LEVEL


@dataclass(frozen=True, slots=True)
class Standing:
    """One entry in one ranking.

    Args:
        rank: 1 is best; equal in a tie group.
        best: The best rank that its significant differences allow: 1 and the entries that are significantly better.
        worst: The worst: the number of entries minus those that are significantly worse.
    """

    entry: str
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


@dataclass(frozen=True)
class Scores:
    """Entries that can be compared with each other: by one metric on the same questions, or by the mean over tasks.

    Args:
        averages: Entry -> its mean score.
        tasks: For each task the scores of its questions, and the place of each entry in them.
    """

    averages: Mapping[str, float]
    tasks: Sequence[tuple[Paired, Mapping[str, int]]]

    @staticmethod
    def of(columns: Mapping[str, Floats], clusters: Sequence[Labels] = ()) -> Scores:
        """The scores of one task.

        Args:
            columns: Entry -> scores of the questions, in one order; NaN where there is none.
            clusters: For each key of clusters one label per question.

        Raises:
            ValueError: The entries were scored on different questions.
        """
        if len({(len(column), np.isnan(column).tobytes()) for column in columns.values()}) > 1:
            raise ValueError("entries of one ranking are scored on the same questions")
        known = ~np.isnan(next(iter(columns.values()), np.zeros(0)))
        values = np.column_stack([column[known] for column in columns.values()]) if columns else np.zeros((0, 0))
        labels = [tuple(label for label, inside in zip(key, known, strict=True) if inside) for key in clusters]
        averages = {name: math.fsum(column[known]) / max(1, known.sum()) for name, column in columns.items()}
        return Scores(averages, [(Paired(values, labels), {name: i for i, name in enumerate(columns)})])

    @staticmethod
    def mean_of(tasks: Sequence[Scores]) -> Scores:
        """The mean over tasks, of the entries that all tasks have: a missing task is missing, never 0."""
        names = [name for name in tasks[0].averages if all(name in task.averages for task in tasks)] if tasks else []
        averages = {name: math.fsum(task.averages[name] for task in tasks) / len(tasks) for name in names}
        return Scores(averages, [one for task in tasks for one in task.tasks])

    def of_these(self, names: Sequence[str]) -> Scores:
        """The same for some of the entries."""
        return Scores({name: self.averages[name] for name in names}, self.tasks)

    def differences(self, name: str, others: Sequence[str]) -> list[Difference]:
        """One entry minus each of some others, on the same questions; tasks are independent of each other."""
        if not others:
            return []
        apart = np.array([self.averages[name] - self.averages[other] for other in others])
        by_task = [paired.row(places[name], [places[other] for other in others]) for paired, places in self.tasks]
        whole = by_task[0] if len(by_task) == 1 else by_task[0].mean_with(by_task[1:])
        return whole.differences(apart, sum(len(paired.values) for paired, _ in self.tasks))


def ranked(scores: Scores, higher_is_better: bool = True) -> tuple[list[Standing], list[Pair]]:
    """The entries by one metric, best first, ties by name; and all their pairs."""
    sign = -1 if higher_is_better else 1
    order = sorted(scores.averages, key=lambda entry: (sign * scores.averages[entry], entry))
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
    standings: list[Standing] = []
    leader, rank = "", 0
    for place, entry in enumerate(order, 1):
        if not leader or (leader, entry) in differ:
            leader, rank = entry, place
        standings.append(Standing(entry, rank, 1 + better[entry], len(order) - worse[entry]))
    return standings, pairs
