"""Exact search for the largest inner products over more vectors than memory holds, in one pass for all queries.

Tiles of ``TILE`` vectors are read in order. A float32 product with each tile, whose error is bounded, leaves out the
rows that cannot be among the best; the others are scored in float64, and ties are broken by row. So a result depends
neither on the tiles nor on the batch of queries.

Beside the vectors that are mapped (one shard at a time), a search of Q queries takes at most :func:`memory` bytes,
however many vectors there are.
"""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError

TILE = 8192  # vectors that are compared at once
GROUP = 1024  # queries that are
EXACT_BYTES = 1 << 26  # of the vectors and queries that are multiplied in float64 at once
CROWDED = 64  # rows beyond 2k of one tile from which the tile's own k-th best narrows them first
IMPORT_REPAID = 2_000_000_000  # float16 numbers that numpy widens in the time that torch saves beyond its own import
UNIT = 2.0**-24  # relative rounding error of float32
Ranking = list[tuple[int, float]]


def memory(queries: int, dimensions: int, k: int) -> int:
    """Bytes that a search takes at most, beside the mapped vectors."""
    tile = 3 * TILE * dimensions * 4  # as float32, as stored, and squared
    products = 3 * min(queries, GROUP) * TILE * 4  # also sorted, and the mask with the places
    best = queries * (dimensions * 12 + k * 12 * 8)  # float32 and float64; rows and scores, and both while merged
    return tile + products + best + 2 * EXACT_BYTES


@dataclass(slots=True)
class Best:
    """The best k rows of each query so far, best first.

    Args:
        rows: int64 (Q, k); ``none`` where there are fewer.
        scores: float32 (Q, k); minus infinity where there are fewer.
    """

    rows: Any
    scores: Any

    @classmethod
    def of_none(cls, queries: int, k: int, none: int) -> Best:
        """No row yet."""
        return cls(np.full((queries, k), none, np.int64), np.full((queries, k), -np.inf, np.float32))

    def merge(self, queries: Any, rows: Any, scores: Any) -> None:
        """Take in (query, row, score) triples of rows that came never before."""
        k, touched = self.rows.shape[1], np.unique(queries)
        of = np.concatenate([np.repeat(touched, k), queries])
        all_rows = np.concatenate([self.rows[touched].ravel(), rows])
        all_scores = np.concatenate([self.scores[touched].ravel(), scores])
        order = np.lexsort((all_rows, -all_scores, of))
        of = of[order]
        rank = np.arange(len(of)) - np.searchsorted(of, of)
        kept = order[rank < k]  # k of each: it had k before
        self.rows[touched] = all_rows[kept].reshape(-1, k)
        self.scores[touched] = all_scores[kept].reshape(-1, k)


def best_rows(vectors: Any, queries: Any, k: int) -> list[Ranking]:
    """The ``k`` rows with the largest inner product with each query, best first, ties by row.

    Args:
        vectors: (N, D), an array or :class:`~lm_eval_rag.harness.retrieval.shards.Shards`; any float type.
        queries: float32 (Q, D).

    Returns:
        For each query ``min(k, N)`` pairs (row, score). Scores are float64 sums, rounded to float32.

    Raises:
        UserError: A vector holds NaN or infinity.
    """
    count = len(vectors)
    best = Best.of_none(len(queries), min(k, count), count)
    lengths = np.sqrt(np.einsum("qd,qd->q", queries, queries, dtype=np.float64))
    widen = _by_torch if vectors.dtype == np.float16 and _torch_is_quicker(count * queries.shape[1]) else _by_numpy
    buffer = np.empty((min(TILE, count), queries.shape[1]), np.float32)  # new memory for each tile takes longer
    for start in range(0, count, TILE):
        stored = vectors[start : start + TILE]
        tile = buffer[: len(stored)]
        widen(stored, tile)
        longest = _longest(tile, start, vectors)
        exact = stored if stored.dtype == np.float64 else tile
        for at in range(0, len(queries), GROUP):
            group = slice(at, at + GROUP)
            margins = 2 * (tile.shape[1] + 4) * UNIT * longest * lengths[group]
            places, columns = _possible(queries[group] @ tile.T, best.scores[group, -1], margins, best.rows.shape[1])
            _take_in(best, queries, exact, places + at, columns, start)
    return [
        list(zip(rows.tolist(), scores.tolist(), strict=True))
        for rows, scores in zip(best.rows, best.scores, strict=True)
    ]


def _torch_is_quicker(numbers: int) -> bool:
    """Whether torch, which widens float16 in a fifth of numpy's time, is here, and its import is repaid."""
    return "torch" in sys.modules or (numbers >= IMPORT_REPAID and find_spec("torch") is not None)


def _by_torch(stored: Any, tile: Any) -> None:
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # it is only read
        torch.from_numpy(tile).copy_(torch.from_numpy(stored))


def _by_numpy(stored: Any, tile: Any) -> None:
    np.copyto(tile, stored, casting="same_kind")


def _longest(tile: Any, start: int, vectors: Any) -> float:
    """The largest length of a tile's vectors."""
    squares = np.einsum("nd,nd->n", tile, tile)
    longest = float(squares.max())
    if not np.isfinite(longest):
        row = start + int(np.argmin(np.isfinite(squares)))
        place = vectors.place(row) if hasattr(vectors, "place") else f"row {row}"
        raise UserError(f"A vector holds NaN, infinity or huge numbers ({place}). Encode this corpus again.")
    return math.sqrt(longest)


def _possible(products: Any, worst: Any, margins: Any, k: int) -> tuple[Any, Any]:
    """(queries, columns) of the products that may be among the best k.

    Args:
        products: float32 (Q, T); each differs from the exact one by at most half of the query's margin.
        worst: float32 (Q,): the score that a row must exceed.
        margins: float64 (Q,).
    """
    limits = (worst - margins).astype(np.float32)
    limits = np.nextafter(limits, np.float32(-np.inf))  # the margin itself was rounded
    mask = products >= limits[:, None]
    crowded = np.flatnonzero(np.count_nonzero(mask, axis=1) > 2 * k + CROWDED)
    if len(crowded) and k < products.shape[1]:
        of_tile = np.partition(products[crowded], -k, axis=1)[:, -k]
        mask[crowded] = products[crowded] >= np.maximum(limits[crowded], of_tile - margins[crowded])[:, None]
    places, columns = np.divmod(np.flatnonzero(mask), products.shape[1])  # much faster than nonzero in two dimensions
    return places, columns


def _take_in(best: Best, queries: Any, tile: Any, places: Any, columns: Any, start: int) -> None:
    """Score (query, column) pairs in float64, and merge those that are better than the k-th."""
    step = max(1, EXACT_BYTES // (16 * tile.shape[1]))
    for at in range(0, len(places), step):
        of, column = places[at : at + step], columns[at : at + step]
        products = np.einsum("nd,nd->n", tile[column], queries[of], dtype=np.float64)
        scores = products.astype(np.float32)  # so that equal vectors have equal scores
        better = scores > best.scores[of, -1]  # rows come in order, so a later row loses a tie
        if better.any():
            best.merge(of[better], column[better] + start, scores[better])
