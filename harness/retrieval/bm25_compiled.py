"""BM25's search compiled by numba, with the results of :mod:`lm_eval_rag.harness.retrieval.bm25_pruned`.

It adds up the same float32 weights in float64. It serves the queries whose sums are exact, so that rows and scores are
equal to those of numpy, whatever the order of the additions. Documents with equal scores are ordered by row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain
from typing import Any

import numpy as np

from lm_eval_rag.harness.retrieval import bm25_kernel
from lm_eval_rag.harness.retrieval.bm25_index import Index
from lm_eval_rag.harness.retrieval.bm25_pruned import Ranking
from lm_eval_rag.harness.retrieval.bm25_shared import shared_tokens

log = logging.getLogger(__name__)
PARTS = (
    "search_one", "add", "keep", "complete", "place_of", "lowest_score", "best", "best_of_common", "insert",
)  # fmt: skip
LISTED = 100  # rows that are listed for common tokens, beside 2 k, since some are candidates (it changes speed alone)
WIDE = 1000  # the most documents of a query: the compiled search keeps its best by insertion


class CompiledSearch:
    """The search of one index.

    Args:
        documents: How many the corpus has.

    Raises:
        ImportError: As :func:`compiled_kernel`.
    """

    def __init__(self, index: Index, documents: int) -> None:
        self._search = compiled_kernel()
        self._index, self._documents = index, documents
        self._sizes = np.diff(index.starts).tolist()  # documents of each token
        # Every weight is a multiple of the spacing at the smallest. Sums below 2^53 such spacings are exact in float64.
        self._exact_below = float(np.spacing(index.weights.min(initial=1))) * 2.0**53

    def serves(self, query: Sequence[int], k: int) -> bool:
        """Whether the sums of a query are exact, so that the result is that of numpy, and k is not too large."""
        return k <= WIDE and float(self._index.highest[query].sum(dtype=np.float64)) < self._exact_below

    def search(self, queries: Sequence[Sequence[int]], k: int) -> list[Ranking]:
        """The ``k`` best documents of each query, best first, ties by row."""
        index, k = self._index, min(k, self._documents)
        groups = shared_tokens(queries)
        order = [i for group in groups for i in group.queries]
        first = np.array([0, *accumulate(len(group.queries) for group in groups)], np.int64)
        common = _lists([group.common for group in groups])
        others = _lists([sorted(other, key=self._sizes.__getitem__) for group in groups for other in group.others])
        rows, scores = np.empty((len(queries), k), np.int32), np.empty((len(queries), k))
        counts = np.empty(len(queries), np.int64)
        postings = (index.starts, index.rows, index.weights, index.highest)
        self._search(postings, self._documents, (first, *common), others, 2 * k + LISTED, rows, scores, counts)
        rankings: list[Ranking] = [[]] * len(queries)
        for i, of_query, best, n in zip(order, rows.tolist(), scores.tolist(), counts.tolist(), strict=True):
            rankings[i] = list(zip(of_query[:n], best[:n], strict=True))
        return rankings


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Lists of numbers as one array, and where each begins."""
    numbers = np.fromiter(chain.from_iterable(lists), np.int64)
    return numbers, np.array([0, *accumulate(map(len, lists))], np.int64)


@cache
def compiled_kernel() -> Callable[..., None]:
    """The compiled search. numba stores its code on disk, so it compiles once on a machine.

    Raises:
        ImportError: numba is not installed or is switched off (``NUMBA_DISABLE_JIT``).
    """
    from numba import config, njit
    from numba.extending import register_jitable

    if config.DISABLE_JIT:
        raise ImportError("numba is switched off (NUMBA_DISABLE_JIT)")
    log.info("BM25 is searched by numba. The first time on a machine it compiles, which takes some seconds.")
    for name in PARTS:
        register_jitable(getattr(bm25_kernel, name))
    try:
        compiled: Callable[..., None] = njit(cache=True, nogil=True)(bm25_kernel.search_all)
    except RuntimeError as error:  # there is no folder for its code
        log.info("numba cannot store compiled code (%s). Set NUMBA_CACHE_DIR to a folder that can be written.", error)
        compiled = njit(nogil=True)(bm25_kernel.search_all)
    return compiled


def is_started() -> bool:
    """Whether numba has been started in this process."""
    return compiled_kernel.cache_info().currsize > 0
