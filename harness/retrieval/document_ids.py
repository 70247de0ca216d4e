"""Rows of documents by their ids, for indexes and runs that were made elsewhere.

A dictionary of 21 million ids takes gigabytes. Here their 64-bit hashes are sorted, and each hit is compared with the
id itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lm_eval_rag.harness.data.corpus import Corpus

SEED = 0  # of the hash; hashes are not stored


class DocumentIds:
    """The ids of a corpus.

    Args:
        corpus: Its ids are unique.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._ids = corpus.ids

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        """The row of each id; None for an id that the corpus lacks."""
        hashes, _ = self._sorted
        wanted = _hashes(list(ids))
        starts = np.searchsorted(hashes, wanted).tolist()
        return [self._row(id, hash, start) for id, hash, start in zip(ids, wanted.tolist(), starts, strict=True)]

    def _row(self, id: str, hash: int, start: int) -> int | None:
        hashes, order = self._sorted
        for place in range(start, len(hashes)):
            if hashes[place] != hash:
                return None
            row = int(order[place])
            if self._ids[row].as_py() == id:
                return row
        return None

    @cached_property
    def _sorted(self) -> tuple[Any, Any]:
        """The sorted hashes (uint64) and the row of each (int64)."""
        hashes = _hashes(self._ids)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order


def _hashes(ids: Any) -> Any:
    """uint64 (len(ids),); equal texts have equal hashes in one process."""
    import polars as pl

    column = pl.Series(ids, dtype=pl.String) if isinstance(ids, list) else pl.from_arrow(ids)
    assert isinstance(column, pl.Series)
    return column.cast(pl.String).hash(SEED).to_numpy()
