"""Answer scores: exact match and token F1 (RuleRAG, arXiv:2410.22353, section 4; SQuAD, arXiv:1606.05250).

``em_contains`` is our own score, for models that answer in sentences.
"""

from __future__ import annotations

from lm_eval_rag.harness.scoring.case import Case
from lm_eval_rag.harness.scoring.normalise import has_words


def em(case: Case) -> float | None:
    """1 if the answer equals a gold answer in normal form, else 0; unscored without gold answers."""
    return float(case.normal_answer in case.golds) if case.golds else None


def em_contains(case: Case) -> float | None:
    """1 if the answer contains a gold answer as whole words, in normal form, else 0; unscored without gold answers.

    Our own score, for answers in sentences. It is never below ``em`` and does not replace it: an answer that lists many
    names often contains a gold answer by chance.
    """
    return float(any(has_words(case.normal_answer, gold) for gold in case.golds)) if case.golds else None


def token_f1(case: Case) -> float | None:
    """The highest F1 of the answer's bag of words with a gold answer's, in [0, 1]; unscored without gold answers."""
    return max(_f1(case.normal_answer.split(), gold.split()) for gold in case.golds) if case.golds else None


def _f1(answer: list[str], gold: list[str]) -> float:
    """2 |common| / (|answer| + |gold|), which is the harmonic mean of precision and recall."""
    common = sum(min(answer.count(word), gold.count(word)) for word in set(answer).intersection(gold))
    return 2 * common / (len(answer) + len(gold))
