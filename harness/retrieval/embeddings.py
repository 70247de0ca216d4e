"""Document vectors on disk: computed once, in chunks, and memory-mapped; a killed run is resumed.

A finished folder holds ``vectors.npy``. Until then ``partial.npy`` has the final shape, and ``done.json`` says how many
of its rows are finished. It is written after these rows, so a killed process loses one chunk at most. A lock lets one
process compute at a time; the others wait and then read the result.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lm_eval_rag.harness.common.locks import locked
from lm_eval_rag.harness.common.progress import Meter

log = logging.getLogger(__name__)
Store = Literal["float16", "float32"]
Encode = Callable[[int, int], Any]
CHUNK = 1024  # rows after which the progress is saved and shown


def stored_vectors(
    folder: Path, rows: int, store: Store, encode: Encode, note: Mapping[str, Any], chunk: int = CHUNK
) -> Any:
    """The vectors of all rows, as a read-only memory map; in memory if the folder cannot be written.

    Args:
        folder: A folder for these vectors alone; created if it is missing.
        rows: Number of documents.
        store: Type of the stored numbers.
        encode: ``encode(start, stop)`` returns the vectors of these rows, of shape (stop - start, dimensions).
        note: A description of the vectors, stored beside them for human readers.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            vectors = _finished(folder / "vectors.npy", rows, store)
            if vectors is None:
                (folder / "note.json").write_text(json.dumps(note, indent=1), encoding="utf-8")
                _fill(folder, rows, store, encode, chunk)
                vectors = _finished(folder / "vectors.npy", rows, store)
    except OSError as error:
        log.warning("Vectors cannot be stored in %s (%s). The next run computes them again.", folder, error)
        return np.concatenate([part.astype(store) for _, part in _chunks(encode, 0, rows, chunk)])
    assert vectors is not None
    return vectors


def _finished(path: Path, rows: int, store: Store) -> Any | None:
    """The vectors of an earlier run, or None if they are missing or damaged."""
    if not path.exists():
        return None
    try:
        vectors = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        log.warning("The vectors %s are damaged (%s). They are computed again.", path, error)
        return None
    if vectors.ndim != 2 or len(vectors) != rows or vectors.dtype != store:
        log.warning("The vectors %s are damaged (%s %s). They are computed again.", path, vectors.shape, vectors.dtype)
        return None
    return vectors


def _fill(folder: Path, rows: int, store: Store, encode: Encode, chunk: int) -> None:
    partial, done = folder / "partial.npy", folder / "done.json"
    start = _finished_rows(partial, done, rows, store)
    vectors = np.load(partial, mmap_mode="r+") if start else None
    for at, part in _chunks(encode, start, rows, chunk):
        if vectors is None:
            shape = (rows, part.shape[1])
            vectors = np.lib.format.open_memmap(partial, mode="w+", dtype=np.dtype(store), shape=shape)
        vectors[at : at + len(part)] = part
        vectors.flush()
        _write(done, {"rows": at + len(part)})
    del vectors
    partial.replace(folder / "vectors.npy")
    done.unlink(missing_ok=True)


def _finished_rows(partial: Path, done: Path, rows: int, store: Store) -> int:
    """How many rows an earlier run that was killed has finished."""
    try:
        count = int(json.loads(done.read_text(encoding="utf-8"))["rows"])
        vectors = np.load(partial, mmap_mode="r")
    except (OSError, ValueError, EOFError, KeyError, TypeError):
        return 0
    usable = vectors.ndim == 2 and len(vectors) == rows and vectors.dtype == store and 0 < count <= rows
    return count if usable else 0


def _chunks(encode: Encode, start: int, rows: int, chunk: int) -> Iterator[tuple[int, Any]]:
    with Meter("encoding of documents", rows, "documents", start=start) as meter:
        for at in range(start, rows, chunk):
            part = encode(at, min(at + chunk, rows))
            yield at, part
            meter.update(len(part))


def _write(path: Path, value: Any) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)
