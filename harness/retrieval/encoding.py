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
from lm_eval_rag.harness.retrieval import PARTS, RERANKING, for_other_texts, make_retriever, of_part

FALLBACK = ("static", {"adapter": "base"})
# retriever that is an encoder -> the vectors of its documents
VECTORS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda retriever: retriever.vectors,
    "static": lambda retriever: retriever.documents.vectors,
}


def encoder_of(retriever: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The encoder of a run, as a retriever's name and options: the retriever itself, its part, or ``static``."""
    if retriever == "run" and options.get("fallback") is None:
        return FALLBACK[0], dict(FALLBACK[1])
    name, own = for_other_texts(retriever, options)
    own = {key: value for key, value in own.items() if key not in RERANKING}
    for part in PARTS.get(name, ()):
        if own[part] in VECTORS:
            name, own = own[part], of_part(part, own)
            break
    return (name, own) if name in VECTORS else (FALLBACK[0], dict(FALLBACK[1]))


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
