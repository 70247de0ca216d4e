"""Retrievers by name: each finds the rows of a corpus that fit a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.parameters import Natural, Positive, bind
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.bm25 import BM25, Dates
from lm_eval_rag.harness.retrieval.cross_encoder import Reranked
from lm_eval_rag.harness.retrieval.dense import dense
from lm_eval_rag.harness.retrieval.hybrid import Hybrid
from lm_eval_rag.harness.retrieval.lucene import lucene
from lm_eval_rag.harness.retrieval.static import static


class Retriever(Protocol):
    """What finds documents of one corpus."""

    @property
    def fingerprint(self) -> str:
        """Names everything that the results depend on: corpus, settings, versions."""
        ...

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, score) pairs, best first, ties by row."""
        ...


def _bm25(corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, dates: Dates = "split") -> Retriever:
    return BM25(corpus, k1=k1, b=b, dates=dates)


def _hybrid(
    corpus: Corpus,
    first_options: Mapping[str, Any],
    second_options: Mapping[str, Any],
    *,
    first: str = "bm25",
    second: str = "static",
    constant: Natural = 60,
    depth: Positive = 100,
) -> Retriever:
    parts = ((first, first_options), (second, second_options))
    made = [make_retriever(name, corpus, **options) for name, options in parts]
    return Hybrid(made, constant=constant, depth=depth)


def _rerank(retriever: Retriever, corpus: Corpus, *, rerank: str, rerank_depth: Positive = 50) -> Retriever:
    return Reranked(retriever, corpus, rerank, rerank_depth)


RETRIEVERS: dict[str, Callable[..., Retriever]] = {
    "bm25": _bm25,
    "dense": dense,
    "hybrid": _hybrid,
    "lucene": lucene,
    "static": static,
}
PARTS = {"hybrid": ("first", "second")}  # retrievers made of others, whose options are written first_* and second_*
RERANKING = ("rerank", "rerank_depth")  # options of every retriever


def make_retriever(name: str, corpus: Corpus, **options: Any) -> Retriever:
    """The retriever of that name over a corpus.

    Args:
        options: Keyword parameters of its entry in ``RETRIEVERS``. With ``rerank=MODEL`` a cross-encoder scores its
            best ``rerank_depth`` documents anew.

    Raises:
        UserError: Unknown name or option, a value of another type or out of range, or a package that is missing.
    """
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    parts = PARTS.get(name, ())
    of_parts: list[dict[str, Any]] = [
        {key.removeprefix(f"{part}_"): value for key, value in options.items() if key.startswith(f"{part}_")}
        for part in parts
    ]
    own = {key: value for key, value in options.items() if key not in RERANKING and not key.startswith(_of(parts))}
    again = {key: value for key, value in options.items() if key in RERANKING}
    reranked = bind(_rerank, again) if "rerank" in again else None
    if again and not reranked:
        raise UserError("rerank_depth without rerank is not allowed: give the cross-encoder too, rerank=MODEL.")
    others = (*RERANKING, *(f"{part}_*" for part in parts))
    retriever = bind(RETRIEVERS[name], own, others)(corpus, *of_parts)
    return reranked(retriever, corpus) if reranked else retriever  # type: ignore[no-any-return]


def _of(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{part}_" for part in parts)
