"""What a run makes of its right not to answer: formulas over totals and curves, of all questions rather than of one.

Of n questions c are answered correctly, m are missing, and h = n - m - c are hallucinated; with two judges c and h may
be halves. All functions take arrays of equal shape (one element a resample, say) and return that shape; where a share
is of nothing, they return NaN.

- F as in SimpleQA (arXiv:2411.04368, section 3): the harmonic mean of c / n and c / (n - m).
- Hallucination among attempts: h / (n - m).
- Score under penalty p: (c - p h) / n; CRAG's has p = 1, plain accuracy p = 0. A system that answers when it is right
  with probability above t does best under p = t / (1 - t).
- Area under the risk-coverage curve (Geifman and El-Yaniv, arXiv:1705.08500; AURC as in arXiv:1805.08206): the mean,
  over the attempted questions, of the share of errors among those that the system was at least as sure of. 0 is best.
  Questions with equal confidence are taken in random order: the expectation of it, in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PENALTIES = (0.0, 0.5, 1.0, 2.0, 3.0, 9.0)  # 1 is even odds, 3 and 9 are for t = 75 % and 90 %


def f_score(correct: Floats, missing: Floats, n: Floats) -> Floats:
    """2 c / (2 n - m), in [0, 1]; 0 when nothing was attempted."""
    return _ratio(2 * correct, 2 * n - missing)


def hallucination_of_attempts(correct: Floats, missing: Floats, n: Floats) -> Floats:
    """h / (n - m), in [0, 1]; NaN when nothing was attempted."""
    return _ratio(n - missing - correct, n - missing)


def penalised(correct: Floats, missing: Floats, n: Floats, *, penalty: float) -> Floats:
    """(c - penalty h) / n, in [-penalty, 1]."""
    return _ratio(correct - penalty * (n - missing - correct), n)


def levels(wrong: Sequence[float], confidence: Sequence[float]) -> tuple[Floats, Floats]:
    """(questions, errors) at each level of confidence, the surest first; shapes (levels,)."""
    sure, level = np.unique(-np.asarray(confidence, dtype=np.float64), return_inverse=True)
    sizes = np.bincount(level, minlength=len(sure)).astype(np.float64)
    errors = np.bincount(level, weights=np.asarray(wrong, dtype=np.float64), minlength=len(sure))
    return sizes, errors.astype(np.float64)


def risk_areas(sizes: Floats, errors: Floats) -> Floats:
    """Areas under risk-coverage curves.

    Within a level of b questions with e errors, after N questions with E errors, the expected risk after j more is
    (E + j e / b) / (N + j); summed over j it is e + (E - N e / b)(H(N + b) - H(N)), with H the harmonic numbers.

    Args:
        sizes: Whole numbers of questions by level, the surest first; shape (draws, levels).
        errors: Their errors; the same shape.

    Returns:
        Shape (draws,); NaN where there are no questions.
    """
    after = np.cumsum(sizes, axis=1)
    before, wrong_before = after - sizes, np.cumsum(errors, axis=1) - errors
    most = int(after.max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])
    rate = np.divide(errors, sizes, out=np.zeros_like(errors), where=sizes > 0)
    steps = harmonic[after.astype(np.int64)] - harmonic[before.astype(np.int64)]
    summed: Floats = (errors + (wrong_before - before * rate) * steps).sum(axis=1)
    return _ratio(summed, sizes.sum(axis=1))


def _ratio(part: Floats, whole: Floats) -> Floats:
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    nothing: Floats = np.full(np.broadcast(part, whole).shape, np.nan)
    return np.divide(part, whole, out=nothing, where=whole != 0)
