"""Two searches over one BM25 index, with equal results: numpy alone, or bm25s with numba.

Both sum float32 weights in float64. Such a sum is exact, so a score depends neither on the order of the additions nor
on the search. Documents with equal scores are ordered by row.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lm_eval_rag.harness.retrieval.bm25_index import Index, Postings

log = logging.getLogger(__name__)
Ranking = list[tuple[int, float]]  # (row, score) pairs, best first
LOOKUP = 2  # postings that are added in the time of one look-up (measured; it changes speed alone)
CELLS = 1 << 22  # results of bm25s that are in memory at once: 50 MB
TIES = 2048  # ties grow with the corpus: for each so many documents, bm25s is asked for one more
SHARE = 16  # postings beyond 1 / SHARE of the documents are added faster by numba


def pruned_search(index: Index, query: Sequence[int], k: int, scores: Any, *, complete: bool = True) -> Ranking | None:
    """The ``k`` best documents of a query, by numpy.

    It adds the postings of the rarest token first. It stops when no document without the tokens so far can be among
    the k best (MaxScore; Turtle and Flood, 1995), and looks up the other tokens for the candidates alone.

    Args:
        query: Numbers of the tokens.
        scores: float64 (documents,) of zeros; zeros again afterwards.
        complete: Whether to go on if it cannot stop early; if not, the result is then None.
    """
    terms = [index.postings(number, count) for number, count in Counter(query).items()]
    terms.sort(key=lambda term: len(term.rows))
    added, threshold = 0, 0.0  # postings added; the k-th best score is not below the threshold
    for place, term in enumerate(terms):
        rest = terms[place:]
        if not threshold and added >= k and LOOKUP * added * len(rest) < sum(len(other.rows) for other in rest):
            candidates = np.unique(np.concatenate([other.rows for other in terms[:place]]))
            if len(candidates) >= k:
                totals = _totals(candidates, scores, rest)
                threshold = _kth(totals, k)
                enough = threshold > sum(other.highest for other in rest) * (1 + 1e-9)
                if enough or not complete:
                    scores[candidates] = 0
                    return _best(candidates, totals, k) if enough else None
        added += len(term.rows)
        if added * SHARE > len(scores) and not complete:
            scores.fill(0)
            return None
        np.add.at(scores, term.rows, term.count * term.weights)
    rows = np.flatnonzero(scores >= threshold) if threshold else np.flatnonzero(scores)
    ranking = _best(rows, scores[rows], k)
    scores.fill(0)
    return ranking


def _kth(values: Any, k: int) -> float:
    return float(np.partition(values, -k)[-k])


def _totals(candidates: Any, scores: Any, rest: Sequence[Postings]) -> Any:
    """The candidates' scores with the other tokens counted too, each looked up among the token's rows."""
    totals = scores[candidates]
    for term in rest:
        places = np.minimum(np.searchsorted(term.rows, candidates), len(term.rows) - 1)
        totals += np.where(term.rows[places] == candidates, term.count * term.weights[places], 0)
    return totals


def _best(rows: Any, scores: Any, k: int) -> Ranking:
    """The ``k`` best of unordered candidates, ties by row."""
    if len(rows) > k:
        keep = scores >= _kth(scores, k)  # all that tie with the k-th, of which the lowest rows are taken
        rows, scores = rows[keep], scores[keep]
    order = np.lexsort((rows, -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


class CompiledSearch:
    """bm25s' retrieval, compiled by numba.

    bm25s returns an arbitrary choice of the documents that tie with the last one. So it is asked for more than ``k``,
    and for four times as many again while the last score is still the k-th.

    Args:
        documents: How many the corpus has.

    Raises:
        ImportError: numba is not installed, or it is switched off.
    """

    def __init__(self, index: Index, documents: int) -> None:
        import bm25s

        cache_compiled_code()
        self._index, self._documents = index, documents
        self._engine = bm25s.BM25(method="lucene", dtype="float64", backend="numba")
        arrays = {"data": index.weights, "indices": index.rows, "indptr": index.starts}
        self._engine.scores = {**arrays, "num_docs": documents}
        self._engine.unique_token_ids_set, self._engine.nonoccurrence_array = range(len(index.highest)), None
        # Every weight is a multiple of the spacing at the smallest. Sums below 2^53 such spacings are exact in float64.
        self._exact_below = float(np.spacing(index.weights.min(initial=1))) * 2.0**53

    def serves(self, query: Sequence[int]) -> bool:
        """Whether the sums of a query are exact, so that the result is that of :func:`pruned_search`."""
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
                hits = self._engine.retrieve([queries[i] for i in numbers], k=width, show_progress=False)
                for i, rows, scores in zip(numbers, hits.documents, hits.scores, strict=True):
                    if width < self._documents and 0 < scores[-1] == scores[k - 1]:
                        incomplete.append(i)
                    else:
                        matching = np.count_nonzero(scores)
                        rankings[i] = _best(rows[:matching], scores[:matching], k)
            waiting, width = incomplete, 4 * width
        return rankings


def cache_compiled_code() -> None:
    """Let numba keep the compiled search on disk, which bm25s does not ask for: 5 s of compilation once a machine.

    Raises:
        ImportError: numba is not installed, or it is switched off (``NUMBA_DISABLE_JIT``).
    """
    from bm25s.numba import retrieve_utils

    compiled = retrieve_utils._retrieve_internal_jitted_serial
    if not hasattr(compiled, "enable_caching"):
        raise ImportError("numba is switched off")
    try:
        compiled.enable_caching()
    except RuntimeError as error:
        log.info("numba cannot store compiled code (%s). Set NUMBA_CACHE_DIR to a folder that can be written.", error)
