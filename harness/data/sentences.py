"""The numbered sentences of passages: the column ``sentences`` of ``corpus.parquet``, which not every corpus has.

Sentence i of a passage is what evidence (passage, i) names. The column is as large as the texts, so it is read when
sentences are first asked for, and not with the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.corpus_files import DOCUMENTS
from lm_eval_rag.harness.data.tables import column_names, read_parquet, values

SENTENCES = "sentences"
KEPT = 2  # columns in memory: one task ends while the next one begins


def split_passages(corpus: Corpus, hits: Sequence[tuple[int, float]]) -> list[Passage]:
    """The documents of (row, retrieval score) pairs, with their sentences where the corpus has them.

    Raises:
        UserError: The corpus's file is damaged.
    """
    passages = corpus.passages(hits)
    rows = [int(row) for row, _ in hits]
    while corpus.whole is not None:
        corpus, places = corpus.whole
        rows = [places[row] for row in rows]
    file = None if corpus.folder is None else corpus.folder / DOCUMENTS
    if file is None or not file.is_file():  # a corpus in memory, or a prepared table
        return passages
    column = _column(file, file.stat().st_mtime_ns)
    if column is None:
        return passages
    return [replace(p, sentences=tuple(parts or ())) for p, parts in zip(passages, values(column, rows), strict=True)]


@lru_cache(maxsize=KEPT)
def _column(file: Path, changed: int) -> Any:
    """The column of a file that was last changed at a time; None if it has no such column."""
    return read_parquet(file, (SENTENCES,)).column(SENTENCES) if SENTENCES in column_names(file) else None
