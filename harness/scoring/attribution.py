"""Attribution: whether a retrieved document contains the answer, right or wrong; our own score."""

from __future__ import annotations

from lm_eval_rag.harness.scoring.case import Case
from lm_eval_rag.harness.scoring.normalise import has_words, normalise


def attributed(case: Case) -> float | None:
    """1 if a retrieved document contains the answer as whole words, else 0.

    Our own score. Unscored without an answer or retrieval, and if every gold answer is a label, yes or no.
    """
    if case.documents is None or case.missing or case.closed:
        return None
    return float(any(has_words(normalise(text), case.normal_answer) for text, _ in case.documents))
