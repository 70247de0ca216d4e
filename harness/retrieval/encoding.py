"""Vectors of texts, by the run's retriever if it is an encoder, else by the embedded encoder ``static``.

Texts are embedded as documents. In ``static`` the weight of a word depends on the other texts (its idf among them). The
vectors of a dense encoder are kept in ``$LM_EVAL_RAG_CACHE/embeddings``, so a killed run does not lose them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import RERANKING, make_retriever

FALLBACK = ("static", {"adapter": "base"})
# retriever that is an encoder -> the vectors of its documents
VECTORS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda retriever: retriever.vectors,
    "static": lambda retriever: retriever.documents.vectors,
}
PARTS = ("first", "second")  # of a hybrid retriever, one of which may be an encoder


def encoder_of(retriever: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The encoder of a run, as a retriever's name and options: the retriever itself, its part, or ``static``."""
    if retriever in VECTORS:
        return retriever, {name: value for name, value in options.items() if name not in RERANKING}
    if retriever == "hybrid":
        for part, usual in zip(PARTS, ("bm25", "static"), strict=True):
            if (name := options.get(part, usual)) in VECTORS:
                prefix = f"{part}_"
                own = {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
                return encoder_of(name, own)
    return FALLBACK[0], dict(FALLBACK[1])


def encoder_fingerprint(retriever: str, options: Mapping[str, Any]) -> str:
    """Names all that the vectors depend on, beside the texts."""
    name, own = encoder_of(retriever, options)
    made = make_retriever(name, Corpus.of([Passage("0", "text")]), **own)
    return made.fingerprint.rpartition(" over ")[0]


def vectors_of(texts: Sequence[str], retriever: str, options: Mapping[str, Any]) -> Any:
    """float32 (texts, dimensions)."""
    if not texts:
        return np.zeros((0, 1), np.float32)
    name, own = encoder_of(retriever, options)
    corpus = Corpus.of(Passage(str(place), text) for place, text in enumerate(texts))
    return np.asarray(VECTORS[name](make_retriever(name, corpus, **own)), np.float32)
