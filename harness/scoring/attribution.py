"""Attribution: whether the answer given, right or wrong, can be read off a retrieved document."""

from __future__ import annotations

from lm_eval_rag.harness.scoring.case import Case
from lm_eval_rag.harness.scoring.normalise import has_words


def attributed(case: Case) -> float | None:
    """1 if a retrieved document holds the answer as whole words, else 0; unscored without an answer or retrieval."""
    if case.documents is None or case.missing:
        return None
    return float(any(has_words(text, case.given) for text, _ in case.documents))
