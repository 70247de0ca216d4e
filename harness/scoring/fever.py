"""FEVER's scores (arXiv:1803.05355, section 5; the scorer of the shared task, arXiv:1811.10971).

- ``fever_label``: label accuracy.
- ``fever_score``: the label is right, and, unless it is NOT ENOUGH INFO, one whole gold set of sentences is among the
  first five predicted sentences. Unscored for all claims if the run predicts no evidence; if it predicts some, a claim
  without has an empty list (:func:`lm_eval_rag.harness.core.record.share_predicted`). The scorer requires evidence,
  which may be empty, for every claim.
- ``fever_precision`` and ``fever_recall``: of the first five predicted sentences, over claims that are SUPPORTS or
  REFUTES: the share of them that stand in any gold set (1 without a prediction, as the scorer has it), and whether a
  whole gold set is among them. The official F1 is 2 P R / (P + R) of the two means over all claims. ``fever_f1`` is
  the F1 of each claim; its mean is not the official number.

A method answers with a label. :func:`label_of` accepts usual spellings of the three labels and nothing else: any other
answer is wrong.
"""

from __future__ import annotations

from lm_eval_rag.harness.scoring.case import Case
from lm_eval_rag.harness.scoring.official import Fact, Official
from lm_eval_rag.harness.scoring.squad import harmonic, plain_form

SUPPORTS, REFUTES, NOT_ENOUGH_INFO = LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
MOST = 5  # predicted sentences that count
_SPELLINGS = {
    SUPPORTS: ("supports", "support", "supported", "true"),
    REFUTES: ("refutes", "refute", "refuted", "false"),
    NOT_ENOUGH_INFO: ("not enough info", "not enough information", "notenoughinfo", "nei", "not verifiable"),
}
_LABEL = {spelling: label for label, spellings in _SPELLINGS.items() for spelling in spellings}


def label_of(answer: str) -> str | None:
    """The label that an answer spells, ignoring case and punctuation; None for any other text."""
    return _LABEL.get(plain_form(answer.replace("_", " ")))


def fever_label(case: Case) -> float | None:
    """1 if the answer is the gold label, else 0."""
    official = _claim(case)
    return None if official is None else float(label_of(case.answer) == official.answers[0])


def fever_score(case: Case) -> float | None:
    """1 if the label is right and the evidence is sufficient, else 0; unscored if the run predicts no evidence."""
    official, right, complete = _claim(case), fever_label(case), fever_recall(case)
    if official is None or official.predicted is None or right is None:
        return None
    if official.answers[0] == NOT_ENOUGH_INFO:
        return right
    return None if complete is None else right * complete


def fever_precision(case: Case) -> float | None:
    """The share of the first five predicted sentences that stand in a gold set, in [0, 1]; 1 without a prediction."""
    scored = _evidence(case)
    if scored is None:
        return None
    predicted, sets = scored
    named = frozenset[Fact]().union(*sets)
    return sum(fact in named for fact in predicted) / len(predicted) if predicted else 1.0


def fever_recall(case: Case) -> float | None:
    """1 if a whole gold set is among the first five predicted sentences, else 0."""
    scored = _evidence(case)
    return None if scored is None else float(any(one <= set(scored[0]) for one in scored[1]))


def fever_f1(case: Case) -> float | None:
    """The harmonic mean of this claim's precision and recall."""
    precision, recall = fever_precision(case), fever_recall(case)
    return None if precision is None or recall is None else harmonic(precision, recall)


def _claim(case: Case) -> Official | None:
    official = case.official
    return official if official is not None and official.family == "fever" and official.answers else None


def _evidence(case: Case) -> tuple[tuple[Fact, ...], tuple[frozenset[Fact], ...]] | None:
    """(first five predicted sentences, gold sets) of a claim that has gold evidence."""
    official = _claim(case)
    if official is None or official.answers[0] == NOT_ENOUGH_INFO or official.predicted is None:
        return None
    sets = tuple(one for one in official.evidence_sets or () if one)
    return (official.predicted[:MOST], sets) if sets else None
