"""Retrievers by name: each finds the rows of a corpus that fit a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lm_eval_rag.harness.corpus import Corpus
from lm_eval_rag.harness.errors import unknown
from lm_eval_rag.harness.parameters import bind
from lm_eval_rag.harness.retrieval.bm25 import BM25, Dates


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


RETRIEVERS: dict[str, Callable[..., Retriever]] = {"bm25": _bm25}


def make_retriever(name: str, corpus: Corpus, **options: Any) -> Retriever:
    """The retriever of that name over a corpus.

    Args:
        options: Keyword parameters of its entry in ``RETRIEVERS``.

    Raises:
        UserError: Unknown name or option, or a value of another type or out of range.
    """
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    return bind(RETRIEVERS[name], options)(corpus)  # type: ignore[no-any-return]
