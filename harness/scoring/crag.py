"""CRAG's scores (arXiv:2406.04744): an answer is correct, missing or a hallucination; a wrong one costs a point.

Missing is looked at before any match, so "I don't know" is never correct. Where no judge is at hand, as on RuleQA,
correct is exact match. All are unscored without gold answers.
"""

from __future__ import annotations

from lm_eval_rag.harness.scoring.answer import em
from lm_eval_rag.harness.scoring.case import Case


def crag_correct(case: Case) -> float | None:
    """1 if the answer is given and equals a gold answer in normal form, else 0."""
    return float(not case.missing and em(case) == 1) if case.golds else None


def crag_missing(case: Case) -> float | None:
    """1 if the answer was declined, is blank, or has "i don't know" in it, else 0."""
    return float(case.missing) if case.golds else None


def crag_hallucination(case: Case) -> float | None:
    """1 if the answer is neither correct nor missing, else 0."""
    return float(not case.missing and em(case) == 0) if case.golds else None


def crag_score(case: Case) -> float | None:
    """Correct - hallucination: 1, 0 or -1."""
    if not case.golds or case.missing:
        return 0.0 if case.golds else None
    return 1.0 if em(case) == 1 else -1.0
