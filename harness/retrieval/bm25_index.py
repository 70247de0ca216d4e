"""BM25's index: the score of every (token, document) pair, computed by bm25s and stored in the corpus's folder."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lm_eval_rag.harness.common.errors import MachineError
from lm_eval_rag.harness.common.paths import written_whole
from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.retrieval.tokens import Dates, tokenize

log = logging.getLogger(__name__)
ARRAYS = ("weights", "rows", "starts", "highest")
PART = 1_000  # documents between two updates of the bar
LARGE = 1_000_000  # documents from which the cost is said (docs/scale.md)
FORMAT = 1  # of the saved index and of the tokens in it


class Postings(NamedTuple):
    """One token of a query: its documents, their scores, its count in the query, and the most it adds to a score."""

    rows: Any
    weights: Any
    count: Any
    highest: float


@dataclass(frozen=True, slots=True)
class Index:
    """The score of every (token, document) pair, by token. The arrays are read-only.

    Args:
        vocabulary: token -> its number t, in [0, T).
        weights: float32 (P,): the scores; those of token t are ``weights[starts[t]:starts[t + 1]]``.
        rows: int32 (P,): their documents, ascending within a token.
        starts: int64 (T + 1,).
        highest: float32 (T,): the largest weight of each token.
    """

    vocabulary: dict[str, int]
    weights: Any
    rows: Any
    starts: Any
    highest: Any

    def numbers(self, text: str, dates: Dates) -> list[int]:
        """The numbers of a text's tokens, in order; tokens that are in no document are left out."""
        return [self.vocabulary[token] for token in tokenize(text, dates) if token in self.vocabulary]

    def postings(self, number: int, count: int) -> Postings:
        """The documents of a token, for a query that holds it ``count`` times."""
        span = slice(self.starts[number], self.starts[number + 1])
        return Postings(self.rows[span], self.weights[span], np.float64(count), count * float(self.highest[number]))


def build_index(texts: Sequence[str], k1: float, b: float, dates: Dates = "split") -> Index:
    """The index of texts, computed by bm25s (float32)."""
    import bm25s

    if len(texts) >= LARGE:
        log.warning(
            "The BM25 index of %s documents is built in memory, with about 6 GB and 3 minutes of a core for a million "
            "passages of 100 words. Instead you can give retriever=lucene (retriever_index=NAME_OR_FOLDER takes one "
            "that is built) or a retrieval run (retriever=run,retriever_path=FILE_OR_HUB_ID).",
            f"{len(texts):,}",
        )
    vocabulary: dict[str, int] = {}
    numbered: list[list[int]] = []
    with Meter("BM25 index", len(texts), "documents") as meter:
        for start in range(0, len(texts), PART):
            part = texts[start : start + PART]
            numbered += [[vocabulary.setdefault(token, len(vocabulary)) for token in tokenize(x, dates)] for x in part]
            meter.update(len(part))
    if not vocabulary:
        nothing = np.zeros(0, np.float32)
        return _index({}, nothing, np.zeros(0, np.int32), np.zeros(1, np.int64), nothing)
    engine = bm25s.BM25(k1=k1, b=b, method="lucene")
    built = engine.build_index_from_ids(list(vocabulary.values()), numbered, show_progress=False)
    starts = built["indptr"].astype(np.int64)
    highest = np.maximum.reduceat(built["data"], starts[:-1])
    return _index(vocabulary, built["data"], built["indices"], starts, highest)


def _index(vocabulary: dict[str, int], *arrays: Any) -> Index:
    for array in arrays:
        array.flags.writeable = False  # as from disk: numba compiles its code again for arrays of another kind
    return Index(vocabulary, *arrays)


def stored_index(corpus_folder: Path, settings: str, build: Callable[[], Index]) -> Index:
    """The index in the corpus's folder, memory-mapped; built if it is missing or damaged."""
    folder = corpus_folder / f"bm25-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
    try:
        return _load(folder)
    except (OSError, ValueError, EOFError) as error:
        if folder.is_dir():
            log.warning("The index %s is damaged (%s). It is built again.", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    index = build()
    try:
        _save(index, folder)
    except MachineError as error:
        log.warning("The index could not be stored. The next run builds it again. %s", error)
    return index


def _load(folder: Path) -> Index:
    vocabulary = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    weights, rows, starts, highest = (np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ARRAYS)
    if not len(vocabulary) == len(highest) == len(starts) - 1 or not len(weights) == len(rows) == starts[-1]:
        raise ValueError("the sizes of its arrays disagree")
    return _index(vocabulary, weights, rows, starts, highest)


def _save(index: Index, folder: Path) -> None:
    with written_whole(folder) as temporary:
        for name in ARRAYS:
            np.save(temporary / f"{name}.npy", getattr(index, name))
        (temporary / "vocabulary.json").write_text(json.dumps(index.vocabulary), encoding="utf-8")
