"""BM25's search by bm25s with numba, with the results of :mod:`lm_eval_rag.harness.retrieval.bm25_pruned`.

bm25s adds up the same float32 weights in float64. It serves the queries whose sums are exact, so that rows and scores
are equal to those of numpy, whatever the order of the additions. Documents with equal scores are ordered by row.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from lm_eval_rag.harness.retrieval.bm25_index import Index
from lm_eval_rag.harness.retrieval.bm25_pruned import Ranking

log = logging.getLogger(__name__)
CELLS = 1 << 22  # results of bm25s that are in memory at once: 50 MB
TIES = 2048  # ties grow with the corpus: for each so many documents, bm25s is asked for one more


class CompiledSearch:
    """bm25s' retrieval, compiled by numba.

    bm25s returns an arbitrary choice of the documents that tie with the last one. So it is asked for more than ``k``,
    and for four times as many again while the last score is still the k-th.

    Args:
        documents: How many the corpus has.

    Raises:
        ImportError: As :func:`cache_compiled_code`.
    """

    def __init__(self, index: Index, documents: int) -> None:
        import bm25s

        cache_compiled_code()
        log.info("BM25 continues with numba. The first time on a machine it compiles, which takes some seconds.")
        self._index, self._documents = index, documents
        self._engine = bm25s.BM25(method="lucene", dtype="float64", backend="numba")
        arrays = {"data": index.weights, "indices": index.rows, "indptr": index.starts}
        self._engine.scores = {**arrays, "num_docs": documents}
        self._engine.unique_token_ids_set, self._engine.nonoccurrence_array = range(len(index.highest)), None
        # Every weight is a multiple of the spacing at the smallest. Sums below 2^53 such spacings are exact in float64.
        self._exact_below = float(np.spacing(index.weights.min(initial=1))) * 2.0**53

    def serves(self, query: Sequence[int]) -> bool:
        """Whether the sums of a query are exact, so that the result is that of numpy."""
        return bool(query) and float(self._index.highest[query].sum(dtype=np.float64)) < self._exact_below

    def search(self, queries: Sequence[list[int]], k: int) -> list[Ranking]:
        """The ``k`` best documents of each query, best first, ties by row. No query is empty."""
        rankings: list[Ranking] = [[]] * len(queries)
        waiting, width = list(range(len(queries))), k + 16 + self._documents // TIES
        while waiting:
            width = min(width, self._documents)
            block, incomplete = max(1, CELLS // width), []
            for start in range(0, len(waiting), block):
                numbers = waiting[start : start + block]
                for i, ranking in zip(numbers, self._ask([queries[i] for i in numbers], k, width), strict=True):
                    if ranking is None:
                        incomplete.append(i)
                    else:
                        rankings[i] = ranking
            waiting, width = incomplete, 4 * width
        return rankings

    def _ask(self, queries: Sequence[list[int]], k: int, width: int) -> list[Ranking | None]:
        """The ``k`` best of ``width`` documents; None where documents that are left out may tie with the k-th."""
        documents, scores = self._engine.retrieve(queries, k=width, show_progress=False)
        last = scores[:, -1]
        incomplete = (last > 0) & (last == scores[:, min(k, width) - 1]) & (width < self._documents)
        order = np.lexsort((documents, -scores))[:, :k]
        rows, best = (np.take_along_axis(values, order, axis=1).tolist() for values in (documents, scores))
        return [
            None if tied else [(row, score) for row, score in zip(*hits, strict=True) if score]
            for tied, *hits in zip(incomplete, rows, best, strict=True)
        ]


def cache_compiled_code() -> None:
    """Let numba store the compiled search on disk, which bm25s does not ask for. It then compiles once on a machine.

    Raises:
        ImportError: numba is not installed or is switched off (``NUMBA_DISABLE_JIT``), or bm25s is older than 0.3.12.
    """
    from bm25s.numba import retrieve_utils

    compiled: Any = getattr(retrieve_utils, "_retrieve_internal_jitted_serial", None)
    if not hasattr(compiled, "enable_caching"):
        raise ImportError("numba is switched off, or bm25s is older than 0.3.12")
    try:
        compiled.enable_caching()
    except RuntimeError as error:
        log.info("numba cannot store compiled code (%s). Set NUMBA_CACHE_DIR to a folder that can be written.", error)
