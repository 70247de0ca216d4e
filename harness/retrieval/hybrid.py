"""Two retrievers combined by reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009).

``retriever=hybrid,retriever_first=bm25,retriever_second=dense,retriever_second_model=minilm``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.retrieval.fusion import rank_sums


class Hybrid:
    """Merges the rankings of several retrievers over one corpus.

    Args:
        parts: The retrievers.
        constant: Constant of the fusion, 0 or more; 60 in the paper.
        depth: How many documents of each retriever are merged; k if that is more.
    """

    def __init__(self, parts: Sequence[Any], *, constant: int = 60, depth: int = 100) -> None:
        self._parts, self._constant, self._depth = tuple(parts), constant, depth
        names = "; ".join(part.fingerprint for part in self._parts)
        self.fingerprint = f"hybrid(constant={constant}, depth={depth}) of [{names}]"

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, sum of 1 / (constant + rank)) pairs, best first, ties by row.

        Raises:
            UserError: k is below 1.
        """
        depth = max(at_least("k", k), self._depth)
        lists = [part.search(texts, depth) for part in self._parts]
        return [
            rank_sums([[row for row, _ in ranking] for ranking in rankings], self._constant)[:k]
            for rankings in zip(*lists, strict=True)
        ]

    def source_of(self, text: str) -> str:
        """Who finds the documents of a text in the parts that have a fallback, joined by "+"; "" if none has."""
        sources = [part.source_of(text) for part in self._parts if hasattr(part, "source_of")]
        return "+".join(dict.fromkeys(filter(None, sources)))
