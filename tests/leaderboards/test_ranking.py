"""Ranks against the definition, written anew: tie groups, rank intervals, means over tasks, clustered intervals."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from lm_eval_rag.harness.report.stats import interval, mcnemar
from lm_eval_rag.leaderboards.board.ranking import Scores, mcnemar_of, ranked
from lm_eval_rag.leaderboards.board.resampling import Resamples


def column(share, n=200, seed=0):
    values = np.zeros(n)
    values[np.random.default_rng(seed).permutation(n)[: round(share * n)]] = 1
    return values


def scores_of(columns, clusters=(), **options):
    n = len(next(iter(columns.values()), []))
    return Scores.of(columns, Resamples(n, clusters, **options))


def by_hand(scores):
    """Entry -> (rank, best, worst), with scipy's binomial test and Holm's steps spelt out."""
    order = sorted(scores, key=lambda entry: (-fmean(scores[entry]), entry))
    p_values = {}
    for i, a in enumerate(order):
        for b in order[i + 1 :]:
            only_a, only_b = int((scores[a] > scores[b]).sum()), int((scores[b] > scores[a]).sum())
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
    columns = {f"e{i}": column(share, seed=10 * seed + i) for i, share in enumerate(shares)}
    standings, pairs = ranked(scores_of(columns, draws=200))
    assert {one.entry: (one.rank, one.best, one.worst) for one in standings} == by_hand(columns)
    assert len(pairs) == len(columns) * (len(columns) - 1) / 2


def test_equal_entries_share_a_rank_and_order_does_not_matter():
    columns = {"b": column(0.5), "a": column(0.5), "c": column(0.05, seed=1)}
    first, _ = ranked(scores_of(columns, draws=200))
    second, _ = ranked(scores_of(dict(reversed(columns.items())), draws=200))
    assert first == second
    assert [(one.entry, one.rank) for one in first] == [("a", 1), ("b", 1), ("c", 3)]


def test_lower_may_be_better():
    standings, _ = ranked(scores_of({"a": column(0.5), "b": column(0.05, seed=1)}, draws=200), higher_is_better=False)
    assert [(one.entry, one.rank) for one in standings] == [("b", 1), ("a", 2)]


def test_one_entry_none_and_other_questions():
    assert [one.rank for one in ranked(scores_of({"a": column(0.5)}, draws=200))[0]] == [1]
    assert ranked(scores_of({}, draws=200)) == ([], [])
    with pytest.raises(ValueError, match="same questions"):
        scores_of({"a": np.ones(2), "b": np.ones(3)}, draws=200)


def test_mcnemar_of_many_pairs_is_that_of_each():
    pairs = [(0, 0), (1, 0), (0, 7), (12, 30), (300, 290), (3000, 2800)]
    p_values = mcnemar_of(*(np.array(one, dtype=float) for one in zip(*pairs, strict=True)))
    assert p_values == pytest.approx([mcnemar(*pair) for pair in pairs], rel=1e-9)


def test_intervals_are_those_of_the_bootstrap_of_one_run():
    values = np.random.default_rng(3).choice([0, 0.5, 1], 300)
    (ours,), theirs = Resamples(300).intervals(values[:, None]), interval(values)
    assert ours.mean == pytest.approx(theirs.mean) and ours.n == 300
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.006)
    (flat,) = Resamples(3).intervals(np.ones((3, 1)))
    assert (flat.mean, flat.low, flat.high) == (1, None, None)


def test_intervals_leave_out_questions_without_a_score():
    values = np.where(np.arange(200) < 100, column(0.5), np.nan)
    (one,) = Resamples(200).intervals(values[:, None])
    spread = 1.96 * values[:100].std() / 10
    assert one.n == 100 and one.mean == pytest.approx(np.nanmean(values))
    assert one.high - one.low == pytest.approx(2 * spread, rel=0.1)


def test_clusters_widen_intervals_and_tests_and_the_widest_key_counts():
    """Fifty clusters of eight equal questions carry what fifty questions carry."""
    small = {"a": column(0.7, 50, seed=1), "b": column(0.45, 50, seed=2)}
    large = {name: np.repeat(values, 8) for name, values in small.items()}
    by_topic = [str(i // 8) for i in range(400)]
    narrow, wide, both = (scores_of(large, keys) for keys in ((), [by_topic], [[str(i) for i in range(400)], by_topic]))
    few = scores_of(small)
    width = lambda scores: scores.intervals()["a"].high - scores.intervals()["a"].low  # noqa: E731
    assert width(wide) == pytest.approx(width(few), abs=0.025) and width(both) == pytest.approx(width(wide), abs=0.025)
    assert width(narrow) < 0.5 * width(wide)
    (difference,) = wide.differences("a", ["b"])
    apart = small["a"] - small["b"]
    error = apart.std() / np.sqrt(50)
    assert difference.test == "bootstrap" and narrow.differences("a", ["b"])[0].test == "mcnemar"
    assert difference.p == pytest.approx(2 * norm.sf(apart.mean() / error), rel=0.2)
    assert difference.interval.high - difference.interval.low == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_the_overall_mean_weighs_tasks_equally_and_leaves_out_who_lacks_one():
    tasks = [scores_of({"a": column(0.5), "b": column(0.1)}), scores_of({"a": column(0.9, n=50)}, seed=1)]
    means = Scores.mean_of(tasks)
    result = means.intervals()
    assert set(result) == {"a"}
    assert result["a"].mean == pytest.approx(0.7) and result["a"].n == 250
    spread = 1.96 * np.sqrt((0.25 / 200 + 0.09 / 50) / 4)
    assert result["a"].low == pytest.approx(0.7 - spread, abs=0.01)
    assert result["a"].high == pytest.approx(0.7 + spread, abs=0.01)
    assert Scores.mean_of([]).intervals() == {}
