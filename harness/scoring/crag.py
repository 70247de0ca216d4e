"""CRAG's scores (arXiv:2406.04744): an answer is correct, missing or a hallucination; a wrong one costs a point.

Over n questions the score is (2 correct + missing) / n - 1, which is the mean of 1, 0 and -1.

:func:`settle` is the part of the specification that needs no judge, in its order: missing comes before any match, so
"I don't know" is never correct; then exact match with the answer or an alternative; then what is said about the
question being invalid. What is left goes to a judge (:mod:`lm_eval_rag.harness.scoring.judge`). The public evaluation
script cannot run as published and is not followed.

With alternatives the rule about "invalid" is about pairs: the answers that speak of it are met by a prediction that
speaks of it and by no other; a judge sees only the answers that do as the prediction does.

A blank or declined answer is missing too: the paper counts an empty response as such.
Where no judge was at hand, as on RuleQA, correct is ``em``. All are unscored without gold answers, and where a judge
failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.scoring.answer import em
from lm_eval_rag.harness.scoring.case import Case, declines
from lm_eval_rag.harness.scoring.verdict import Verdict

INVALID = "invalid"
HUMAN = {"perfect": 1.0, "acceptable": 0.5, "missing": 0.0, "incorrect": -1.0}  # the paper's scale
SECONDS = 30.0  # allowed for an answer


def plain(text: str) -> str:
    """The form in which the specification compares: lower case, single spaces."""
    return " ".join(text.lower().split())


def settle(
    answers: Sequence[str], prediction: str, *, abstained: bool = False, was_cut: bool = False, crag: bool = True
) -> Verdict | None:
    """The verdict that needs no judge, or None.

    Args:
        answers: The answer and its alternatives, at least one.
        prediction: Already cut.
        abstained: Whether the method declined.
        was_cut: Whether the prediction was longer: then it is exact if an answer, longer too, begins with it.
        crag: False leaves out what is CRAG's alone: the rule about "invalid" (an entity's name may hold it).
    """
    if abstained or declines(prediction):
        return Verdict("missing", 0.0)
    if any(_exact(plain(prediction), plain(answer), was_cut) for answer in answers):
        return Verdict("exact", 1.0)
    if crag:
        speaking = [INVALID in answer.lower() for answer in answers]
        if INVALID in prediction.lower() and any(speaking):
            return Verdict("both invalid", 1.0)
        if INVALID in prediction.lower() or all(speaking):
            return Verdict("one invalid", 0.0)
    return None


def _exact(given: str, answer: str, was_cut: bool) -> bool:
    return given == answer or (was_cut and answer.startswith(given))


def open_answers(answers: Sequence[str], *, crag: bool = True) -> tuple[str, ...]:
    """The answers that a judge compares a prediction with, once :func:`settle` left it open."""
    return tuple(answer for answer in answers if not crag or INVALID not in answer.lower())


def crag_correct(case: Case) -> float | None:
    """1 if the answer is correct, else 0; with several judges the share of them that says so."""
    if not case.golds:
        return None
    return float(not case.missing and em(case) == 1) if case.verdict is None else case.verdict.correct


def crag_missing(case: Case) -> float | None:
    """1 if the answer was declined, is blank, or has "i don't know" in what is looked at of it, else 0."""
    return None if crag_correct(case) is None else _missing(case)


def crag_hallucination(case: Case) -> float | None:
    """1 - correct - missing, in [0, 1]."""
    correct = crag_correct(case)
    return None if correct is None else 1.0 - correct - _missing(case)


def crag_score(case: Case) -> float | None:
    """Correct - hallucination, in [-1, 1]: 1, 0 or -1 with one judge."""
    correct = crag_correct(case)
    return None if correct is None else 2.0 * correct + _missing(case) - 1.0


def acc_lm(case: Case) -> float | None:
    """Acc-LM (CRP-RAG, section 4.2): 1 if a language model says that the answer means a gold answer, else 0.

    A missing answer is 0 and an exact one 1 without asking. Unscored unless language models were the judges, so that
    the verdicts of rules never go by its name.
    """
    return crag_correct(case) if case.verdict is not None and case.verdict.by_models else None


def crag_human(case: Case) -> float | None:
    """The label that a person gave this answer, on the paper's scale: 1, 0.5, 0 or -1; unscored without one."""
    return HUMAN.get(case.label or "")


def within_30s(case: Case) -> float | None:
    """1 if the answer took at most 30 s of backend time, else 0; on CRAG's tasks, where the run says how long."""
    if case.seconds is None or case.verdict is None or not case.verdict.crag:
        return None
    return float(case.seconds <= SECONDS)


def _missing(case: Case) -> float:
    return float(case.missing if case.verdict is None else case.verdict.missing)
