"""Ranking a few texts by BM25, without an index."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.bm25 import BM25


def bm25(query: str, texts: Sequence[str], k: int) -> list[tuple[int, float]]:
    """At most ``k`` (place, score) pairs, best first, equal scores by place.

    Texts that share no word with the question are left out; word frequencies are those of these texts alone.

    Raises:
        UserError: k is below 1.
    """
    at_least("k", k)
    if not texts:
        return []
    corpus = Corpus.of(Passage(str(place), text) for place, text in enumerate(texts))
    return BM25(corpus).search([query], k)[0]
