"""Intervals and tests against closed formulas, scipy, enumeration, and their own promise in simulation."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from lm_eval_rag.harness.report.stats import bootstrap_means, holm, interval, mcnemar, paired, percentile

scipy_stats = pytest.importorskip("scipy.stats")


def test_resampled_means_have_the_exact_distribution() -> None:
    """All 3^3 resamples of three values, enumerated."""
    values = [0.0, 0.25, 1.0]
    exact: dict[float, float] = {}
    for draw in itertools.product(values, repeat=3):
        exact[round(sum(draw) / 3, 9)] = exact.get(round(sum(draw) / 3, 9), 0) + 1 / 27
    means = np.round(bootstrap_means(values, draws=200_000, seed=3), 9)
    for mean, share in exact.items():
        assert (means == mean).mean() == pytest.approx(share, abs=0.005)


def test_spread_is_the_closed_form() -> None:
    """The bootstrap's standard error of a mean is the population standard deviation over the root of n."""
    values = np.random.default_rng(0).beta(2, 3, size=400)
    means = bootstrap_means(values, draws=20_000, seed=1)
    assert means.std() == pytest.approx(values.std() / math.sqrt(400), rel=0.02)
    assert means.mean() == pytest.approx(values.mean(), abs=0.001)


def test_ends_agree_with_scipy() -> None:
    values = np.random.default_rng(1).choice([0.0, 0.5, 1.0], size=150, p=[0.5, 0.2, 0.3])
    theirs = scipy_stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", random_state=0)
    ours = interval(values, draws=20_000)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.004)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.004)
    assert (ours.mean, ours.n) == (pytest.approx(values.mean()), 150)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_coverage(share: float) -> None:
    """95 % intervals hold the truth in about 95 % of simulated runs (600 runs: standard error 0.9 points)."""
    rng = np.random.default_rng(7)
    held = 0
    for run in range(600):
        found = interval((rng.random(300) < share).astype(float), draws=2000, seed=run)
        assert found.low is not None and found.high is not None
        held += found.low <= share <= found.high
    assert 0.92 <= held / 600 <= 0.98


def test_false_alarms() -> None:
    """Under no difference the paired bootstrap rejects at 5 % in about 5 % of simulated runs."""
    rng = np.random.default_rng(8)
    alarms = sum(
        paired(list(rng.choice([0, 0.5, 1], size=200)), list(rng.choice([0, 0.5, 1], size=200)), draws=1000).p < 0.05
        for _ in range(600)
    )
    assert 0.02 <= alarms / 600 <= 0.08


def test_same_seed_same_interval_and_zero_is_a_seed() -> None:
    values = [0.0, 1.0, 1.0, 0.5] * 20
    means = bootstrap_means(values, seed=0)
    assert np.array_equal(means, bootstrap_means(values, seed=0))
    assert np.array_equal(means, bootstrap_means(values))
    assert not np.array_equal(means, bootstrap_means(values, seed=1))


def test_order_of_questions_does_not_matter() -> None:
    values = list(np.random.default_rng(2).random(50))
    assert interval(values).low == interval(values[::-1]).low


def test_equal_values_have_no_interval() -> None:
    assert interval([0.0] * 20).low is interval([0.0] * 20).high is None
    assert interval([1.0]).low is None
    assert interval([1.0]).mean == 1.0


@pytest.mark.parametrize(("cells", "sizes"), [(1000, [33, 33, 33, 1]), (30, [1] * 100), (20, [1] * 100)])
def test_blocks_of_draws_bound_the_memory_and_change_no_mean(
    cells: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block holds at most ``CELLS`` counts (or one draw); the draws are the same ones, whatever its size."""
    seeded, drawn = np.random.default_rng, []

    class Recorded:
        def __init__(self, seed: int) -> None:
            self.rng = seeded(seed)

        def multinomial(self, n: int, shares: np.ndarray, size: int) -> np.ndarray:
            drawn.append(size)
            return np.asarray(self.rng.multinomial(n, shares, size=size))

    whole = bootstrap_means(np.arange(30.0), draws=100, seed=5)
    monkeypatch.setattr("lm_eval_rag.harness.report.stats.CELLS", cells)
    monkeypatch.setattr(np.random, "default_rng", Recorded)
    parts = bootstrap_means(np.arange(30.0), draws=100, seed=5)
    assert drawn == sizes
    assert parts.shape == (100,) and np.array_equal(parts, whole)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_an_interval_is_the_quantiles_of_its_own_resamples(seed: int, level: float) -> None:
    values = np.random.default_rng(9).choice([0.0, 0.5, 1.0], size=80)
    means = np.sort(bootstrap_means(values, draws=700, seed=seed))
    low, high = np.quantile(means, (1 - level) / 2), np.quantile(means, 1 - (1 - level) / 2)
    assert np.array_equal(means, bootstrap_means(values, 700, seed))  # in order
    found = interval(values, 700, seed, level)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


def test_what_is_not_named_is_10000_draws_seed_0_and_95_percent() -> None:
    values = [0.0, 0.5, 1.0, 1.0] * 9
    assert interval(values) == interval(values, draws=10_000, seed=0, level=0.95)
    assert bootstrap_means(values).shape == (10_000,)
    other = [0.5, 0.5, 1.0, 0.0] * 9
    assert paired(values, other) == paired(values, other, draws=10_000, seed=0)


@pytest.mark.parametrize("seed", [0, 4])
def test_the_paired_interval_is_that_of_the_differences(seed: int) -> None:
    rng = np.random.default_rng(10)
    ours, theirs = rng.choice([0.0, 0.5, 1.0], size=60), rng.choice([0.0, 0.5, 1.0], size=60)
    found = paired(list(ours), list(theirs), draws=800, seed=seed)
    assert found.interval == interval(ours - theirs, 800, seed)
    means = bootstrap_means(ours - theirs, 800, seed)
    at_or_below, at_or_above = (means < 1e-9).sum() + 1, (means > -1e-9).sum() + 1
    assert found.p == pytest.approx(min(1.0, 2 * min(at_or_below, at_or_above) / 801))
    assert (means == 0).any()  # a mean of exactly 0 counts on both sides


@pytest.mark.parametrize("scale", [0.1, 1e5 / 3, 1e-7])
def test_sums_that_are_zero_count_on_both_sides_whatever_the_scale(scale: float) -> None:
    """0.1 + 0.2 - 0.3 is not 0 in floating point; the p value is that of the whole numbers 1, 2 and -3."""
    whole = [1.0, 2.0, -3.0, 1.0, 2.0, 2.0]
    wanted = paired(whole, [0.0] * 6, draws=3000)
    found = paired([value * scale for value in whole], [0.0] * 6, draws=3000)
    assert wanted.test == found.test == "bootstrap"
    assert found.p == wanted.p < 1


def test_p_is_never_above_1() -> None:
    """Most means are 0 here, so both sides hold more than half of them."""
    assert paired([1.0, 0.5], [0.5, 1.0], draws=500).p == 1.0


def test_equal_scores_other_than_0_and_1_differ_with_p_1() -> None:
    found = paired([0.5, 0.25, 1.0], [0.5, 0.25, 1.0])
    assert (found.p, found.test, found.interval.mean, found.interval.low) == (1.0, "bootstrap", 0.0, None)
    for zero, one in ((0.0, 1.0), (0, 1), (False, True)):
        same, other = paired([zero, one, one], [zero, one, one]), paired([zero, one, one], [one, one, zero])
        assert (same.p, same.test) == (1.0, "mcnemar") == (other.p, other.test)
        assert other.interval == interval([-1.0, 0.0, 1.0])


@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (3, 9), (9, 3), (40, 40), (5, 60), (700, 900)])
def test_mcnemar_is_the_binomial_test(counts: tuple[int, int]) -> None:
    wanted = scipy_stats.binomtest(counts[0], sum(counts)).pvalue if sum(counts) else 1.0
    assert mcnemar(*counts) == pytest.approx(wanted, rel=1e-9)


def test_paired_takes_mcnemar_for_zeros_and_ones() -> None:
    ours, theirs = [1.0] * 12 + [0.0] * 8, [0.0] * 9 + [1.0] * 5 + [0.0] * 6
    found = paired(ours, theirs)
    assert found.test == "mcnemar"
    assert found.p == pytest.approx(scipy_stats.binomtest(9, 11).pvalue)
    assert found.interval.mean == pytest.approx((12 - 5) / 20)


def test_paired_bootstrap_is_antisymmetric_and_near_the_t_test() -> None:
    rng = np.random.default_rng(4)
    ours = list(rng.random(300))
    theirs = [value - 0.03 + 0.2 * float(rng.standard_normal()) for value in ours]
    forth, back = paired(ours, theirs), paired(theirs, ours)
    assert forth.test == "bootstrap"
    assert forth.interval.mean == pytest.approx(-back.interval.mean)
    assert forth.interval.low == pytest.approx(-(back.interval.high or 0), abs=0.003)
    assert forth.p == pytest.approx(scipy_stats.ttest_rel(ours, theirs).pvalue, abs=0.02)
    assert paired(ours, ours).p == 1.0


def test_smallest_p_is_bounded_by_the_draws() -> None:
    assert paired([1.0, 0.5] * 100, [0.0, 0.25] * 100, draws=1000).p == pytest.approx(2 / 1001)


def test_holm_by_hand() -> None:
    """Holm 1979: 0.01 x 4, 0.02 x 3 = 0.06, 0.03 x 2 = 0.06, then 0.04 held up to 0.06."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.02]) == [0.02]


def test_holm_is_between_bonferroni_and_raw() -> None:
    p_values = list(np.random.default_rng(5).random(30) ** 4)
    for raw, adjusted in zip(p_values, holm(p_values), strict=True):
        assert raw <= adjusted <= min(1.0, 30 * raw)


def test_percentile_is_a_nearest_rank() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(range(1, 101), 0.95) == 95
    assert percentile([4.0], 0.95) == 4.0
    assert percentile([3.0, 1.0, 2.0], 0.0) == 1.0 and percentile([3.0, 1.0, 2.0], 1.0) == 3.0
    assert math.isnan(percentile([], 0.5))


def test_a_large_interval_is_quick() -> None:
    """10,000 draws over 2,000 questions of a 0/1 score: milliseconds, since the draw is over distinct values."""
    start = time.process_time()
    interval(np.tile([0.0, 1.0], 1000))
    assert time.process_time() - start < 1
