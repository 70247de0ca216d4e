"""Ranks against the definition, written anew: tie groups, rank intervals, means over tasks."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from scipy.stats import binomtest

from lm_eval_rag.leaderboards.board.ranking import overall, ranked


def column(share, n=200, seed=0):
    values = np.zeros(n)
    values[np.random.default_rng(seed).permutation(n)[: round(share * n)]] = 1
    return {str(i): float(value) for i, value in enumerate(values)}


def by_hand(scores):
    """Entry -> (rank, best, worst), with scipy's binomial test and Holm's steps spelt out."""
    order = sorted(scores, key=lambda entry: (-fmean(scores[entry].values()), entry))
    p_values = {}
    for i, a in enumerate(order):
        for b in order[i + 1 :]:
            only_a = sum(scores[a][id] > scores[b][id] for id in scores[a])
            only_b = sum(scores[b][id] > scores[a][id] for id in scores[a])
            p_values[a, b] = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    significant, pairs = set(), sorted(p_values, key=p_values.get)
    for step, pair in enumerate(pairs):
        if p_values[pair] * (len(pairs) - step) >= 0.05:
            break
        significant.add(pair)
    result, leader, rank = {}, None, 0
    for place, entry in enumerate(order, 1):
        if leader is None or (leader, entry) in significant:
            leader, rank = entry, place
        better = sum(pair[1] == entry for pair in significant)
        worse = sum(pair[0] == entry for pair in significant)
        result[entry] = (rank, 1 + better, len(order) - worse)
    return result


@pytest.mark.parametrize("seed", range(8))
def test_ranks_are_those_of_the_definition(seed):
    random = np.random.default_rng(seed)
    shares = random.choice([0.1, 0.3, 0.35, 0.4, 0.6, 0.9], size=random.integers(1, 8))
    scores = {f"e{i}": column(share, seed=10 * seed + i) for i, share in enumerate(shares)}
    standings, pairs = ranked(scores)
    assert {one.entry: (one.rank, one.best, one.worst) for one in standings} == by_hand(scores)
    assert len(pairs) == len(scores) * (len(scores) - 1) / 2


def test_equal_entries_share_a_rank_and_order_does_not_matter():
    scores = {"b": column(0.5), "a": column(0.5), "c": column(0.05, seed=1)}
    first, _ = ranked(scores)
    second, _ = ranked(dict(reversed(scores.items())))
    assert first == second
    assert [(one.entry, one.rank) for one in first] == [("a", 1), ("b", 1), ("c", 3)]


def test_one_entry_none_and_other_questions():
    assert [one.rank for one in ranked({"a": column(0.5)})[0]] == [1]
    assert ranked({}) == ([], [])
    with pytest.raises(ValueError, match="same questions"):
        ranked({"a": {"q": 1.0}, "b": {"r": 1.0}})


def test_the_overall_mean_weighs_tasks_equally_and_leaves_out_who_lacks_one():
    tasks = [{"a": column(0.5), "b": column(0.1)}, {"a": column(0.9, n=50)}]
    result = overall(tasks)
    assert set(result) == {"a"}
    assert result["a"].mean == pytest.approx(0.7) and result["a"].n == 250
    spread = 1.96 * np.sqrt((0.25 / 200 + 0.09 / 50) / 4)
    assert result["a"].low == pytest.approx(0.7 - spread, abs=0.01)
    assert result["a"].high == pytest.approx(0.7 + spread, abs=0.01)
