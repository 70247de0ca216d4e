"""Answer scores: exact match and token F1 (RuleRAG, arXiv:2410.22353, section 4; SQuAD, arXiv:1606.05250).

``em_contains`` is of this project, for models that answer in sentences.
"""

from __future__ import annotations

from collections import Counter

from lm_eval_rag.harness.scoring.case import Case
from lm_eval_rag.harness.scoring.normalise import has_words


def em(case: Case) -> float | None:
    """1 if the answer equals a gold answer in normal form, else 0; unscored without gold answers."""
    return float(case.given in case.golds) if case.golds else None


def em_contains(case: Case) -> float | None:
    """1 if a gold answer stands in the answer as whole words, in normal form, else 0; unscored without gold answers.

    For answers in sentences; never less than ``em``, and no substitute for it: an answer that lists many names holds
    the right one more often.
    """
    return float(any(has_words(case.given, gold) for gold in case.golds)) if case.golds else None


def token_f1(case: Case) -> float | None:
    """The best F1 of the answer's bag of words against a gold answer's, in [0, 1]; unscored without gold answers."""
    return max(_overlap(case.given.split(), gold.split()) for gold in case.golds) if case.golds else None


def _overlap(given: list[str], gold: list[str]) -> float:
    """2 |common| / (|given| + |gold|), which is the harmonic mean of precision and recall."""
    common = sum((Counter(given) & Counter(gold)).values())
    return 2 * common / (len(given) + len(gold))
