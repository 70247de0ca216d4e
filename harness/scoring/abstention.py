"""Scores of abstention: totals and curves over all questions of a run, not over a single question.

Of n questions, c are answered correctly, m are missing, and h = n - m - c are hallucinated. With two judges, c and h
may be multiples of 1/2. All functions take arrays of equal shape (for example one element per bootstrap resample) and
return that shape. A ratio with denominator 0 is NaN.

- F as in SimpleQA (arXiv:2411.04368, section 3): the harmonic mean of c / n and c / (n - m).
- Hallucination among attempts: h / (n - m).
- Score with penalty p: (c - p h) / n. CRAG's score has p = 1, accuracy has p = 0. With p = t / (1 - t), a system scores
  best if it answers exactly the questions that it gets right with a probability above t.
- Area under the risk-coverage curve (Geifman and El-Yaniv, arXiv:1705.08500; AURC as in arXiv:1805.08206): the mean,
  over the attempted questions, of the error rate among the questions with at least the same confidence. 0 is best.
  Questions with equal confidence are in random order; the expectation is computed in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PENALTIES = (0.0, 0.5, 1.0, 2.0, 3.0, 9.0)  # 1 is even odds, 3 and 9 are for t = 75 % and 90 %


def f_score(correct: Floats, missing: Floats, n: Floats) -> Floats:
    """2 c / (2 n - m), in [0, 1]; 0 if no question was attempted."""
    return _ratio(2 * correct, 2 * n - missing)


def hallucination_of_attempts(correct: Floats, missing: Floats, n: Floats) -> Floats:
    """h / (n - m), in [0, 1]; NaN if no question was attempted."""
    return _ratio(n - missing - correct, n - missing)


def penalised(correct: Floats, missing: Floats, n: Floats, *, penalty: float) -> Floats:
    """(c - penalty h) / n, in [-penalty, 1]."""
    return _ratio(correct - penalty * (n - missing - correct), n)


def levels(wrong: Sequence[float], confidence: Sequence[float]) -> tuple[Floats, Floats]:
    """(questions, errors) at each level of confidence, highest first; shapes (levels,)."""
    ascending = -np.asarray(confidence, dtype=np.float64)
    _, level, sizes = np.unique(ascending, return_inverse=True, return_counts=True)
    return sizes.astype(np.float64), np.bincount(level, weights=wrong).astype(np.float64)


def risk_areas(sizes: Floats, errors: Floats) -> Floats:
    """Areas under risk-coverage curves.

    Consider a level of b questions with e errors that follows N questions with E errors. After j questions of this
    level the expected risk is (E + j e / b) / (N + j). Its sum over j is e + (E - N e / b)(H(N + b) - H(N)), where H
    are the harmonic numbers.

    Args:
        sizes: Number of questions per level, highest confidence first; integers, shape (draws, levels).
        errors: Number of errors per level; same shape.

    Returns:
        Shape (draws,); NaN for a draw without questions.
    """
    after = np.cumsum(sizes, axis=1)
    before, wrong_before = after - sizes, np.cumsum(errors, axis=1) - errors
    most = int(after.max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])
    rate = errors / np.maximum(sizes, 1)
    steps = harmonic[after.astype(np.int64)] - harmonic[before.astype(np.int64)]
    summed: Floats = (errors + (wrong_before - before * rate) * steps).sum(axis=1)
    return _ratio(summed, sizes.sum(axis=1))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return part / np.where(whole == 0, np.nan, whole)
