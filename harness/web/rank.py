"""The chunks that fit a question best: by BM25, or by the cosine of embeddings as published (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.bm25 import BM25

# Of a question and texts, at most k (place, score) pairs: best first, ties by place.
Ranker = Callable[[str, Sequence[str], int], list[tuple[int, float]]]
Encoder = Callable[[Sequence[str]], Any]  # n texts -> (n, width) floats, rows in their order


def bm25(query: str, texts: Sequence[str], k: int) -> list[tuple[int, float]]:
    """BM25 among these texts alone; those that share no word with the question are left out.

    Raises:
        UserError: k is below 1.
    """
    at_least("k", k)
    if not texts:
        return []
    corpus = Corpus.of(Passage(str(place), text) for place, text in enumerate(texts))
    return BM25(corpus).search([query], k)[0]


def by_embedding(encode: Encoder, *, encode_query: Encoder | None = None) -> Ranker:
    """A ranker by cosine similarity, in [-1, 1]; a text or question whose vector is zero or not finite scores 0.

    Args:
        encode: Embeds texts, and the question too unless ``encode_query`` does (two towers).
    """

    def rank(query: str, texts: Sequence[str], k: int) -> list[tuple[int, float]]:
        at_least("k", k)
        if not texts:
            return []
        vectors, asked = _unit(encode(texts), len(texts)), _unit((encode_query or encode)([query]), 1)[0]
        if vectors.shape[1] != len(asked):
            raise UserError(
                f"The encoders give vectors of {vectors.shape[1]} and {len(asked)} numbers: give one width."
            )
        scores = vectors @ asked
        order = np.argsort(-scores, kind="stable")[:k]
        return [(int(place), float(scores[place])) for place in order]

    return rank


def _unit(vectors: Any, n: int) -> Any:
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != n:
        raise UserError(f"The encoder gave an array of shape {rows.shape} for {n} texts: needed is one row for each.")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=(lengths > 0) & np.isfinite(lengths))
