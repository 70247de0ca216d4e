"""The vectors with the largest inner product: all are compared (flat), or FAISS's graph of neighbours is (HNSW).

On the CPU, flat is one pass over all vectors (:mod:`lm_eval_rag.harness.retrieval.exact_search`). On GPUs and in a
graph FAISS proposes candidates. Their scores are then computed in float64, one query at a time, and ties are broken by
row. So a result depends neither on the batch nor on the order of FAISS. Flat is exact on GPUs too: it asks for more
candidates until none that is left out can tie with the k-th.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.extras import versions
from lm_eval_rag.harness.retrieval.exact_search import best_rows

log = logging.getLogger(__name__)
# (queries, m) -> (scores, rows) of the m best rows of each query: float32 and int64 of shape (Q, m); row -1 means none.
Candidates = Callable[[Any, int], tuple[Any, Any]]
EXTRA = 32  # candidates beyond k
BLOCK = 65_536  # rows that are converted to float32 at once
ROUNDING = 1e-5  # relative error of FAISS's float32 sums over a few thousand dimensions
CONSTRUCTION = 200  # nodes that are visited for each new node of a graph (efConstruction)
PROVIDERS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12")  # packages of the module; one of them is installed
GPU_MOST = 2048  # rows a query that FAISS can find on a GPU (its GPU_MAX_SELECTION_K); more is an error there


def provider() -> str:
    """Name and version of the package that provides FAISS, as ``faiss-cpu=1.15.1``."""
    known = versions(*PROVIDERS) or versions(*sorted(set(packages_distributions().get("faiss", ()))))
    if known:
        return known
    import faiss

    return f"faiss={faiss.__version__}"


def search(
    vectors: Any, candidates: Candidates | None, queries: Any, k: int, *, exact: bool
) -> list[list[tuple[int, float]]]:
    """The ``k`` rows with the largest inner product with each query, best first, ties by row.

    Args:
        vectors: (N, D), any float type.
        candidates: Proposes rows; None compares all vectors on the CPU.
        queries: float32 (Q, D).
        exact: Whether ``candidates`` compares all rows; it is then asked for more while ties may be left out.

    Returns:
        For each query ``min(k, N)`` pairs (row, score); HNSW may return fewer.
    """
    if candidates is None:
        return best_rows(vectors, queries, k)
    rows = len(vectors)
    rankings: list[list[tuple[int, float]]] = [[] for _ in queries]
    waiting, width = list(range(len(queries))), min(k + EXTRA, rows)
    while waiting:
        if exact and width > GPU_MOST:
            log.info("%d queries for %d rows each run on the CPU: a GPU finds %d at most.", len(waiting), k, GPU_MOST)
            for i, ranking in zip(waiting, best_rows(vectors, queries[waiting], k), strict=True):
                rankings[i] = ranking
            break
        scores, proposed = candidates(np.ascontiguousarray(queries[waiting]), width)
        incomplete = []
        for i, approximate, candidate_rows in zip(waiting, scores, proposed, strict=True):
            ranked = _ranked(vectors, queries[i], np.unique(candidate_rows[candidate_rows >= 0]))
            rankings[i] = ranked[:k]
            margin = ROUNDING * float(np.abs(approximate).max(initial=1))
            if exact and width < rows and approximate[-1] >= ranked[k - 1][1] - margin:
                incomplete.append(i)
        waiting, width = incomplete, min(4 * width, rows)
    return rankings


def _ranked(vectors: Any, query: Any, rows: Any) -> list[tuple[int, float]]:
    scores = np.asarray(vectors[rows], np.float64) @ query.astype(np.float64)
    scores = scores.astype(np.float32)  # so that equal vectors have equal scores, in whatever order they were added up
    order = np.lexsort((rows, -scores))
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def flat(vectors: Any) -> Candidates | None:
    """Compares all rows: on the GPUs when FAISS has any; None without one."""
    import faiss

    if getattr(faiss, "get_num_gpus", lambda: 0)() == 0:
        return None
    index = faiss.IndexFlatIP(vectors.shape[1])
    for start in range(0, len(vectors), BLOCK):
        index.add(np.ascontiguousarray(vectors[start : start + BLOCK], np.float32))
    on_gpus: Candidates = faiss.index_cpu_to_all_gpus(index).search
    return on_gpus


def hnsw(vectors: Any, neighbours: int, explored: int, file: Path | None) -> Candidates:
    """Searches a graph of neighbours (Malkov and Yashunin, arXiv:1603.09320): fast and approximate.

    Args:
        neighbours: Links of each node (M).
        explored: Nodes that are visited for a query (efSearch); k if that is more.
        file: Where the graph is stored, or None. One thread builds it, so that it is always the same.
    """
    import faiss

    index = _read(file, len(vectors)) if file else None
    if index is None:
        index = faiss.IndexHNSWFlat(vectors.shape[1], neighbours, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = CONSTRUCTION
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            for start in range(0, len(vectors), BLOCK):
                index.add(np.ascontiguousarray(vectors[start : start + BLOCK], np.float32))
        finally:
            faiss.omp_set_num_threads(threads)
        if file:
            _store(index, file)

    def candidates(queries: Any, m: int) -> tuple[Any, Any]:
        index.hnsw.efSearch = max(explored, m)
        scores, rows = index.search(queries, m)
        return scores, rows

    return candidates


def _read(file: Path, rows: int) -> Any | None:
    import faiss

    if not file.exists():
        return None
    try:
        index = faiss.read_index(str(file))
    except RuntimeError as error:
        log.warning("The graph %s is damaged (%s). It is built again.", file, str(error).splitlines()[0])
        return None
    return index if index.ntotal == rows else None


def _store(index: Any, file: Path) -> None:
    import faiss

    temporary = file.with_suffix(".new")
    try:
        faiss.write_index(index, str(temporary))
        temporary.replace(file)
    except (OSError, RuntimeError) as error:
        log.warning("The graph could not be stored in %s (%s). The next run builds it again.", file, error)
