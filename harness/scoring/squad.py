"""SQuAD's normal form and token overlap, as the official scripts of the question-answering benchmarks have them.

SQuAD (arXiv:1606.05250), HotpotQA (arXiv:1809.09600) and 2WikiMultihopQA (arXiv:2011.01060) share one normal form:
lower case, no ASCII punctuation, no articles, single spaces. It differs from ours
(:mod:`lm_eval_rag.harness.scoring.normalise`): other punctuation stays, punctuation joins words, and a text may become
empty. So its scores have their own names.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import lru_cache

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
CLOSED = frozenset({"yes", "no", "noanswer"})  # HotpotQA: such an answer has no partial overlap

Overlap = tuple[float, float, float]  # precision, recall, F1


@lru_cache(maxsize=1 << 16)
def squad_form(text: str) -> str:
    """The official normal form; may be ""."""
    return " ".join(_ARTICLES.sub(" ", plain_form(text)).split())


def plain_form(text: str) -> str:
    """Lower case without ASCII punctuation, single spaces; articles stay. 2WikiMultihopQA compares triples so."""
    return " ".join(text.lower().translate(_PUNCTUATION).split())


def overlap(answer: str, gold: str) -> Overlap:
    """Precision, recall and F1 of the two bags of words, both in normal form; 0 if either is empty."""
    words, wanted = answer.split(), gold.split()
    common = sum((Counter(words) & Counter(wanted)).values())
    return from_counts(common, len(words), len(wanted))


def hotpot_overlap(answer: str, gold: str) -> Overlap:
    """As :func:`overlap`; if either text is "yes", "no" or "noanswer", all are 0 unless both are equal."""
    if answer != gold and not CLOSED.isdisjoint((answer, gold)):
        return 0.0, 0.0, 0.0
    return overlap(answer, gold)


def from_counts(common: int, predicted: int, gold: int) -> Overlap:
    """Precision, recall and F1 from the number of common, predicted and gold items; a ratio over 0 is 0."""
    precision = common / predicted if predicted else 0.0
    recall = common / gold if gold else 0.0
    return precision, recall, harmonic(precision, recall)


def harmonic(precision: float, recall: float) -> float:
    """2 P R / (P + R); 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
