"""CRAG's scores (arXiv:2406.04744): an answer is correct (1), missing (0) or a hallucination (-1).

Over n questions the score is (2 correct + missing) / n - 1, which is the mean of 1, 0 and -1.

:func:`settle` is the part of the specification that needs no judge. It applies three rules in this order. First: a
missing answer, so "I don't know" is never correct. Second: an exact match with the answer or an alternative. Third: the
rule about invalid questions. All other answers go to a judge (:mod:`lm_eval_rag.harness.scoring.judge`). The public
evaluation script (``local_evaluation.py`` of facebookresearch/CRAG, commit ad15188) does not run as published and is
not followed.

The rule about "invalid" compares the prediction with each answer: a prediction that contains "invalid" matches only
answers that contain it. A judge sees only the answers that agree with the prediction in this respect.

A blank answer and an abstention are missing too: the paper counts an empty response as missing. So is a refusal in
other words ("I'm sorry, I can't find ..."), if the judge recognises it, as the judge by rules does, also when the
question is invalid. The public script knows one refusal, "I don't know". It leaves all others to the model, which is
told to call them wrong, or calls them wrong itself if the question is invalid. So does a run with a model as judge.
Without a judge, as on RuleQA, correct means ``em``. All scores are unscored without gold answers and if a judge failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.scoring.answer import em
from lm_eval_rag.harness.scoring.case import Case, is_missing
from lm_eval_rag.harness.scoring.judge.refusals import refused
from lm_eval_rag.harness.scoring.verdict import REFUSAL, Verdict

INVALID = "invalid"
HUMAN = {"perfect": 1.0, "acceptable": 0.5, "missing": 0.0, "incorrect": -1.0}  # the paper's scale
SECONDS = 30.0  # time limit of an answer


def plain(text: str) -> str:
    """The form that the specification compares: lower case, single spaces."""
    return " ".join(text.lower().split())


def settle(
    answers: Sequence[str],
    prediction: str,
    *,
    abstained: bool = False,
    was_cut: bool = False,
    crag: bool = True,
    refusals: bool = False,
) -> Verdict | None:
    """The verdict if no judge is needed, else None.

    Args:
        answers: The answer and its alternatives, at least one.
        prediction: Already truncated.
        abstained: Whether the method abstained.
        was_cut: Whether the prediction was truncated: then it is exact if an answer starts with it.
        crag: False switches off CRAG's rule about "invalid", since an entity's name may contain this word.
        refusals: Whether a refusal in other words than "I don't know" is missing where all answers say "invalid", as it
            is to the judge by rules elsewhere; else it is wrong, as in the public script.
    """
    if abstained or is_missing(prediction):
        return Verdict("missing", 0.0)
    if any(_exact(plain(prediction), plain(answer), was_cut) for answer in answers):
        return Verdict("exact", 1.0)
    if crag:
        answer_invalid = [INVALID in answer.lower() for answer in answers]
        if INVALID in prediction.lower() and any(answer_invalid):
            return Verdict("both invalid", 1.0)
        if INVALID in prediction.lower():
            return Verdict("one invalid", 0.0)
        if all(answer_invalid):
            return Verdict(REFUSAL if refusals and refused(prediction) else "one invalid", 0.0)
    return None


def _exact(prediction: str, answer: str, was_cut: bool) -> bool:
    return prediction == answer or (was_cut and answer.startswith(prediction))


def open_answers(answers: Sequence[str], *, crag: bool = True) -> tuple[str, ...]:
    """The answers that a judge compares the prediction with, if :func:`settle` gave no verdict."""
    return tuple(answer for answer in answers if not crag or INVALID not in answer.lower())


def crag_correct(case: Case) -> float | None:
    """1 if the answer is correct, else 0; with several judges, the share that calls it correct."""
    if not case.golds:
        return None
    return float(not case.missing and em(case) == 1) if case.verdict is None else case.verdict.correct


def crag_missing(case: Case) -> float | None:
    """1 if the method abstained, or the truncated answer is blank or contains "i don't know"; else 0."""
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
    """Acc-LM: 1 if a language model judges the answer equivalent to a gold answer, else 0.

    As in CRP-RAG (doi:10.20944/preprints202411.1648.v1), section 4.2. A missing answer scores 0 and an exact
    match scores 1 without a call. Unscored unless all judges are language models, so that verdicts by rules are never
    reported as Acc-LM.
    """
    return crag_correct(case) if case.verdict is not None and case.verdict.by_models else None


def crag_human(case: Case) -> float | None:
    """A person's label of the answer, on the paper's scale: 1, 0.5, 0 or -1; unscored without a label."""
    return HUMAN.get(case.label or "")


def within_30s(case: Case) -> float | None:
    """1 if the answer took at most 30 s of backend time, else 0; only on CRAG's tasks, if the run records the time."""
    if case.seconds is None or case.verdict is None or not case.verdict.crag:
        return None
    return float(case.seconds <= SECONDS)


def _missing(case: Case) -> float:
    return float(case.missing if case.verdict is None else case.verdict.missing)
