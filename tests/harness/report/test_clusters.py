"""Clustered intervals and tests: against scipy, against the matrices they come from, and in simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.cluster_keys import cluster_keys, cluster_labels, clustering_text
from lm_eval_rag.harness.report.clusters import clustered, student_quantile, student_tail
from lm_eval_rag.harness.report.stats import bootstrap_means, interval, paired

scipy_stats = pytest.importorskip("scipy.stats")
UNEQUAL = (200, 150, 120, 90, 70, 50, 40, 30, 20, 15, 10, 5)
DOMINATED = (949, 246, 241, 178, 135, 122, 55, 48, 38, 22, 17, 14)  # the relations of RuleQA-W


def labels_of(sizes: Sequence[int]) -> list[int]:
    return [cluster for cluster, size in enumerate(sizes) for _ in range(size)]


def drawn(rng: np.random.Generator, sizes: Sequence[int], mean: float, correlation: float) -> np.ndarray:
    """0/1 scores whose clusters have beta-distributed means."""
    scale = (1 - correlation) / correlation if correlation else math.inf
    means = rng.beta(mean * scale, (1 - mean) * scale, len(sizes)) if correlation else np.full(len(sizes), mean)
    return (rng.random(sum(sizes)) < np.repeat(means, sizes)).astype(float)


@pytest.mark.parametrize(
    ("sizes", "mean", "correlation", "lowest", "highest"),
    [
        (UNEQUAL, 0.4, 0.1, 0.93, 0.97),
        (UNEQUAL, 0.5, 0.0, 0.93, 0.97),
        ((1,) * 200 + (2,) * 60 + (5,) * 20, 0.3, 0.4, 0.93, 0.97),
        (DOMINATED, 0.4, 0.1, 0.95, 1.0),  # one cluster has nearly half of all questions: too wide, not too narrow
    ],
)
def test_coverage(sizes: Sequence[int], mean: float, correlation: float, lowest: float, highest: float) -> None:
    """95 % intervals hold the truth in about 95 % of 1,000 simulated runs (standard error 0.7 points)."""
    rng, labels = np.random.default_rng(11), tuple(labels_of(sizes))
    held = 0
    for run in range(1000):
        one = interval(drawn(rng, sizes, mean, correlation), draws=400, seed=run, clusters=[labels])
        assert one.low is not None and one.high is not None
        held += one.low <= mean <= one.high
    assert lowest <= held / 1000 <= highest


def test_the_unclustered_interval_of_clustered_data_covers_too_little() -> None:
    rng = np.random.default_rng(12)
    held = 0
    for run in range(300):
        one = interval(drawn(rng, UNEQUAL, 0.4, 0.1), draws=400, seed=run)
        held += (one.low or 0) <= 0.4 <= (one.high or 0)
    assert held / 300 < 0.7


@pytest.mark.parametrize("sizes", [UNEQUAL, (2,) * 150])
def test_false_alarms(sizes: Sequence[int]) -> None:
    """Two runs that are equally good on average, on clusters that suit one of them: 5 % are told apart at 5 %."""
    rng, labels = np.random.default_rng(13), tuple(labels_of(sizes))
    alarms = 0
    for _ in range(1000):
        ours, theirs = (drawn(rng, sizes, 0.4, 0.1) for _ in range(2))
        alarms += paired(ours, theirs, draws=2, clusters=[labels]).p < 0.05
    assert 0.03 <= alarms / 1000 <= 0.07


def test_moments_are_those_of_the_matrix() -> None:
    """Standard error and degrees of freedom by Satterthwaite's formula, from the matrix of the quadratic form."""
    rng = np.random.default_rng(3)
    sizes = np.array([7, 1, 12, 3, 3, 5])
    values, labels = rng.random(31), labels_of(sizes)
    one = clustered(values, labels)
    assert one is not None
    means = np.array([values[np.array(labels) == g].mean() for g in range(6)])
    grand, shares = values.mean(), sizes / 31
    between = (sizes * (means - grand) ** 2).sum() / 5
    inside = ((values - means[labels]) ** 2).sum() / (31 - 6)
    shared = max(0.0, (between - inside) / ((31 - (sizes**2).sum() / 31) / 5))
    variances = np.diag(shared + inside / sizes)
    centred = np.eye(6) - np.outer(np.ones(6), shares)
    form = centred.T @ np.diag(shares**2) @ centred @ variances
    plain = (shares**2 * (means - grand) ** 2).sum()
    assert one.error == pytest.approx(math.sqrt(plain * np.trace(shares**2 * variances) / np.trace(form)))
    assert one.freedom == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))


def test_singletons_are_a_t_test() -> None:
    rng = np.random.default_rng(4)
    ours, theirs = rng.random(40), rng.random(40)
    found = paired(ours, theirs, clusters=[range(40)])
    wanted = scipy_stats.ttest_rel(ours, theirs)
    assert found.test == "clustered t"
    assert found.p == pytest.approx(wanted.pvalue)
    low, high = wanted.confidence_interval()
    assert found.interval.low == pytest.approx(low, abs=0.01)
    assert found.interval.high == pytest.approx(high, abs=0.01)


def test_resampled_clusters_by_hand() -> None:
    """Two clusters, sums 3 of 4 and 0 of 1: both, either one twice."""
    means = bootstrap_means([3.0, 0.0], draws=8000, seed=1, sizes=np.array([4.0, 1.0]))
    for mean, share in ((0.0, 0.25), (3 / 5, 0.5), (6 / 8, 0.25)):
        assert np.isclose(means, mean).mean() == pytest.approx(share, abs=0.02)


def test_the_widest_interval_and_the_largest_p_of_several_keys() -> None:
    rng = np.random.default_rng(5)
    ours, theirs = drawn(rng, UNEQUAL, 0.5, 0.2), drawn(rng, UNEQUAL, 0.4, 0.0)
    coarse, fine = labels_of(UNEQUAL), list(range(sum(UNEQUAL)))
    both, one, other = (paired(ours, theirs, clusters=keys) for keys in ([fine, coarse], [coarse], [fine]))
    assert other.p < one.p == both.p
    assert both.interval == one.interval != other.interval
    assert interval(ours, clusters=[fine, coarse]) == interval(ours, clusters=[coarse])
    assert paired(ours, theirs, clusters=[]) == paired(ours, theirs)
    assert paired(ours, theirs, clusters=[fine, [0] * len(fine)]) == other  # a single cluster says nothing


def test_a_question_without_a_label_is_its_own_cluster() -> None:
    values = drawn(np.random.default_rng(6), UNEQUAL, 0.5, 0.2)
    assert interval(values, clusters=[[None] * len(values)]) == interval(values, clusters=[range(len(values))])


def test_what_shows_no_spread() -> None:
    """Only one cluster differs: p is 1. All differ alike: a sign test of the clusters. Equal scores: p is 1."""
    labels = [0, 0, 1, 1, 2, 2, 3, 3]
    assert paired([1, 1, 0, 0, 0, 0, 0, 0], [0] * 8, clusters=[labels]).p == 1
    alike = paired([1.0] * 8, [0.0] * 8, clusters=[labels])
    assert (alike.p, alike.interval.low) == (2 * 0.5**4, None)
    assert paired([0.5] * 8, [0.5] * 8, clusters=[labels]).p == 1
    assert paired([1.0] * 8, [0.0] * 8, clusters=[[0] * 8]).p == 1
    assert interval([0, 1, 0, 1], clusters=[[0] * 4]).low is None


def test_few_discordant_clusters_are_not_significant() -> None:
    """5 of 1,000 clusters differ, all one way: a sign test gives 0.0625, a t test with 999 degrees of freedom 0.03."""
    ours = [1.0] * 5 + [0.0] * 995
    assert 0.0625 < paired(ours, [0.0] * 1000, clusters=[range(1000)]).p < 0.1


def test_intervals_stay_within_the_range_of_the_score() -> None:
    labels = labels_of([30] * 4)
    values = [1.0] * 30 + [0.0] * 90
    one, difference = interval(values, clusters=[labels]), paired(values, [0.0] * 120, clusters=[labels]).interval
    assert (one.low, one.high) == (0, pytest.approx(1, abs=0.4))
    assert difference.low is not None and -1 <= difference.low < 0  # a difference may be negative


@pytest.mark.parametrize("freedom", [1, 1.7, 4, 11, 60.5, 1293, 1e6])
def test_student_against_scipy(freedom: float) -> None:
    for t in (0.0, 0.01, 0.5, 2, 5, 30):
        assert student_tail(t, freedom) == pytest.approx(2 * scipy_stats.t.sf(t, freedom), rel=1e-8)
    for level in (0.5, 0.95, 0.999):
        assert student_quantile(level, freedom) == pytest.approx(scipy_stats.t.ppf((1 + level) / 2, freedom))


def test_keys_of_the_metadata() -> None:
    assert cluster_keys({"clusters": [["subject", "relation"], "relation"]}) == (("subject", "relation"), ("relation",))
    assert cluster_keys({}) == cluster_keys(None) == cluster_keys({"clusters": []}) == ()
    assert clustering_text((("subject", "relation"), ("relation",))) == "by subject and relation; by relation"
    for wrong in ("subject", [3], [[]], {"subject": 1}, [["subject", 2]]):
        with pytest.raises(UserError, match="is not allowed"):
            cluster_keys({"clusters": wrong})


def test_labels_of_documents() -> None:
    docs = [{"subject": "a", "relation": 1}, {"subject": "a", "relation": 2}, {"subject": None}]
    assert cluster_labels(docs, (("subject",), ("subject", "relation"))) == [
        [("a",), ("a",), None],
        [("a", "1"), ("a", "2"), None],
    ]
    with pytest.raises(UserError, match="'subjekt'"):
        cluster_labels(docs, (("subjekt",),))
