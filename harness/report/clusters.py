"""Means of questions that depend on each other: clusters, a spread that few unequal clusters allow, Student's t.

Questions about one subject, or about one relation, are right or wrong together, so whole clusters are the unit of
chance (Cameron and Miller 2015, "A Practitioner's Guide to Cluster-Robust Inference"; for evaluations of language
models Miller 2024, arXiv:2411.00640). If clusters are few or unequal, the plain cluster-robust variance is too small,
and so is the normal quantile. Both are corrected as Bell and McCaffrey (2002) and Imbens and Kolesar (2016,
doi:10.1162/REST_a_00552) do: the expected value and the degrees of freedom of the variance are computed under a model
in which the questions of a cluster share a random effect, whose size is estimated from the scores.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = Sequence[Hashable]  # one per question; None is a cluster of its own
Clusters = Sequence[Labels]  # one for each key by which questions are clustered
TERMS = 500  # of the continued fraction; it needs about sqrt(df)
STEPS = 60  # of Newton's method; about 5 are needed


@dataclass(frozen=True, slots=True)
class Clustered:
    """Scores of questions by cluster.

    Args:
        sums: Sum of the scores of each cluster.
        sizes: Number of its questions.
        error: Standard error of the mean over questions.
        freedom: Degrees of freedom of ``error``, at least 1.
    """

    sums: Floats
    sizes: Floats
    error: float
    freedom: float

    def reach(self, level: float) -> float:
        """The standard error, times the quantile of Student's t over that of the normal distribution.

        The standard deviation of resampled means that an interval of this level needs.
        """
        return self.error * student_quantile(level, self.freedom) / NormalDist().inv_cdf((1 + level) / 2)


def clustered(values: Floats, labels: Labels) -> Clustered | None:
    """The scores by cluster; None if all questions are in one cluster, which shows nothing of chance."""
    codes, number = numbered(tuple(labels))
    if number < 2:
        return None
    sizes = np.bincount(codes, minlength=number).astype(np.float64)
    sums = np.bincount(codes, weights=values, minlength=number).astype(np.float64)
    mean = math.fsum(values) / len(values)
    plain = float((((sums - mean * sizes) / len(values)) ** 2).sum())
    expected, real, squares = _moments(sizes / len(values), _variances(values, sums, sizes))
    stretch = math.sqrt(real / expected) if expected else 1.0
    freedom = expected**2 / squares if squares else number - 1.0
    return Clustered(sums, sizes, math.sqrt(plain) * stretch, max(1.0, freedom))


def _variances(values: Floats, sums: Floats, sizes: Floats) -> Floats:
    """The variance of each cluster's mean: a shared part, and one that falls with its size (analysis of variance)."""
    n, number = len(values), len(sums)
    means = sums / sizes
    between = float((sizes * (means - sums.sum() / n) ** 2).sum()) / (number - 1)
    inside = (float((values**2).sum()) - float((sums * means).sum())) / (n - number) if n > number else between
    typical = (n - float((sizes**2).sum()) / n) / (number - 1)
    shared = max(0.0, (between - inside) / typical)
    own: Floats = shared + max(0.0, inside) / sizes
    return own


def _moments(shares: Floats, variances: Floats) -> tuple[float, float, float]:
    """Of the plain variance of the mean: its expected value, what it estimates, and half the variance of it.

    The plain variance is a quadratic form of the clusters' means with the matrix M, where M[g, h] =
    w[g] w[h] (s - w[g] - w[h]) + (g == h) w[g]^2, w are the shares and s is the sum of their squares. The moments are
    tr(M V) and tr(M V M V) with the diagonal V of variances, here without the matrix.
    """
    squared = shares**2
    s, weights = float(squared.sum()), squared * variances
    zeroth, first, second = (float((weights * shares**power).sum()) for power in (0, 1, 2))
    off_diagonal = s**2 * zeroth**2 + 2 * zeroth * second + 2 * first**2 - 4 * s * zeroth * first
    diagonal = float((weights**2 * (1 + 2 * (s - 2 * shares))).sum())
    return (1 + s) * zeroth - 2 * first, zeroth, off_diagonal + diagonal


@lru_cache(maxsize=64)
def numbered(labels: tuple[Hashable, ...]) -> tuple[NDArray[np.intp], int]:
    """A number from 0 for each label, and how many there are."""
    numbers: dict[Hashable, int] = {}
    keys = ((i, None) if label is None else label for i, label in enumerate(labels))
    codes = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.intp, len(labels))
    return codes, len(numbers)


def student_quantile(level: float, freedom: float) -> float:
    """The t that |T| exceeds with probability ``1 - level``, by Newton's method from below, where it is monotone."""
    t = NormalDist().inv_cdf((1 + level) / 2)
    for _ in range(STEPS):
        step = (student_tail(t, freedom) - (1 - level)) / (2 * _density(t, freedom))
        t += step
        if abs(step) < 1e-10 * t:
            break
    return t


def student_tail(t: float, freedom: float) -> float:
    """P(|T| >= t) of Student's t for t >= 0: the incomplete beta function at df / (df + t^2) of (df / 2, 1 / 2)."""
    x = freedom / (freedom + t * t)
    if x in (0.0, 1.0):
        return x
    a, b = freedom / 2, 0.5
    front = math.exp(_log_beta(a, b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _log_beta(a: float, b: float) -> float:
    """The logarithm of 1 / B(a, b)."""
    return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)


def _density(t: float, freedom: float) -> float:
    shape = -(freedom + 1) / 2 * math.log1p(t * t / freedom)
    return math.exp(_log_beta(freedom / 2, 0.5) - math.log(freedom) / 2 + shape)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return value
