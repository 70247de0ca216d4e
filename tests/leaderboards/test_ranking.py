"""Ranks against the definition, written anew: tie groups, rank intervals, means over tasks, clustered intervals."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from scipy.stats import binomtest, t, ttest_rel

from lm_eval_rag.harness.report.stats import interval, mcnemar, paired
from lm_eval_rag.leaderboards.board.pairwise import mcnemar_of
from lm_eval_rag.leaderboards.board.ranking import Scores, ranked
from lm_eval_rag.leaderboards.board.resampling import Resamples


def column(share, n=200, seed=0):
    values = np.zeros(n)
    values[np.random.default_rng(seed).permutation(n)[: round(share * n)]] = 1
    return values


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
    standings, pairs = ranked(Scores.of(columns))
    assert {one.entry: (one.rank, one.best, one.worst) for one in standings} == by_hand(columns)
    assert len(pairs) == len(columns) * (len(columns) - 1) / 2


def test_equal_entries_share_a_rank_and_order_does_not_matter():
    columns = {"b": column(0.5), "a": column(0.5), "c": column(0.05, seed=1)}
    first, _ = ranked(Scores.of(columns))
    second, _ = ranked(Scores.of(dict(reversed(columns.items()))))
    assert first == second
    assert [(one.entry, one.rank) for one in first] == [("a", 1), ("b", 1), ("c", 3)]


def test_lower_may_be_better():
    standings, _ = ranked(Scores.of({"a": column(0.5), "b": column(0.05, seed=1)}), higher_is_better=False)
    assert [(one.entry, one.rank) for one in standings] == [("b", 1), ("a", 2)]


def test_one_entry_none_and_other_questions():
    assert [one.rank for one in ranked(Scores.of({"a": column(0.5)}))[0]] == [1]
    assert ranked(Scores.of({})) == ([], [])
    with pytest.raises(ValueError, match="same questions"):
        Scores.of({"a": np.ones(2), "b": np.ones(3)})


def test_mcnemar_of_many_pairs_is_that_of_each():
    pairs = [(0, 0), (1, 0), (0, 7), (12, 30), (300, 290), (3000, 2800)]
    p_values = mcnemar_of(*(np.array(one) for one in zip(*pairs, strict=True)))
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


def test_clustered_intervals_and_tests_are_those_of_the_report():
    """With two keys, of which the second has few clusters."""
    random = np.random.default_rng(5)
    topics = random.integers(0, 12, 300)
    subjects = [f"s{i // 3}" for i in range(300)]
    ease = random.random(12)[topics]
    columns = {name: (random.random(300) < share * ease).astype(float) for name, share in (("a", 0.9), ("b", 0.6))}
    clusters = [subjects, list(topics)]
    ours = Resamples(300, clusters).intervals(np.column_stack(list(columns.values())))
    for one, values in zip(ours, columns.values(), strict=True):
        theirs = interval(values, clusters=clusters)
        assert (one.mean, one.low, one.high) == pytest.approx((theirs.mean, theirs.low, theirs.high), abs=0.012)
        plain = interval(values)
        assert one.high - one.low > 1.2 * (plain.high - plain.low)
    keys = [[str(one) for one in labels] for labels in clusters]
    (difference,), theirs = Scores.of(columns, keys).differences("a", ["b"]), paired(*columns.values(), clusters=keys)
    assert difference.test == theirs.test and difference.p == pytest.approx(theirs.p, rel=1e-6)
    assert difference.interval.mean == pytest.approx(theirs.interval.mean)
    ends = (difference.interval.low, difference.interval.high)
    assert ends == pytest.approx((theirs.interval.low, theirs.interval.high), abs=0.02)


def test_scores_between_0_and_1_are_compared_by_students_t():
    columns = {name: np.random.default_rng(i).random(50) + 0.1 * i for i, name in enumerate("ab")}
    (one,), theirs = Scores.of(columns).differences("a", ["b"]), ttest_rel(columns["a"], columns["b"])
    assert one.p == pytest.approx(theirs.pvalue)
    ends = theirs.confidence_interval(0.95)
    assert (one.interval.low, one.interval.high) == pytest.approx((ends.low, ends.high), rel=0.01)
    (same,) = Scores.of({"a": columns["a"], "b": columns["a"]}).differences("a", ["b"])
    assert same.p == 1 and same.interval.low is None


def test_the_overall_mean_weighs_tasks_equally_and_leaves_out_who_lacks_one():
    first = {"a": column(0.5), "b": column(0.1), "c": column(0.4, seed=1)}
    second = {"a": column(0.9, n=50), "c": column(0.7, n=50, seed=2)}
    scores = Scores.mean_of([Scores.of(first), Scores.of(second)])
    assert scores.averages == pytest.approx({"a": 0.7, "c": 0.55})
    (difference,) = scores.differences("a", ["c"])
    errors = [np.std(one["a"] - one["c"], ddof=1) / np.sqrt(len(one["a"])) for one in (first, second)]
    error = np.hypot(*errors) / 2
    freedom = (errors[0] ** 2 + errors[1] ** 2) ** 2 / (errors[0] ** 4 / 199 + errors[1] ** 4 / 49)
    assert difference.interval.mean == pytest.approx(0.15) and difference.interval.n == 250
    assert difference.p == pytest.approx(2 * t.sf(0.15 / error, freedom))
    standings, _ = ranked(scores)
    assert [one.entry for one in standings] == ["a", "c"]
    assert Scores.mean_of([]).averages == {}
