"""Document vectors on disk: computed once, in chunks, resumable after a kill, and memory-mapped.

A folder holds ``vectors.npy`` when all is done. Until then ``partial.npy`` has the final shape and ``done.json`` says
how many rows of it are good; it is written after they are, so a killed process loses one chunk at most. A lock lets one
process build at a time; others wait and then find the result.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

log = logging.getLogger(__name__)
Store = Literal["float16", "float32"]
Encode = Callable[[int, int], Any]
CHUNK = 4096  # rows between two points from which a killed run goes on


def kept(folder: Path, rows: int, store: Store, encode: Encode, note: Mapping[str, Any], chunk: int = CHUNK) -> Any:
    """The vectors of all rows, as a read-only memory map; in memory where the folder cannot be written.

    Args:
        folder: Theirs alone; made if need be.
        rows: How many there are.
        store: Type on disk.
        encode: ``encode(start, stop)`` gives the vectors of these rows, of shape (stop - start, dimensions).
        note: What they are, kept beside them for people to read.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / "lock"):
            found = _whole(folder / "vectors.npy", rows, store)
            if found is None:
                (folder / "note.json").write_text(json.dumps(note, indent=1), encoding="utf-8")
                _fill(folder, rows, store, encode, chunk)
                found = _whole(folder / "vectors.npy", rows, store)
    except OSError as error:
        log.warning("Vectors cannot be kept in %s (%s); the next run computes them again.", folder, error)
        return np.concatenate([part.astype(store) for _, part in _chunks(encode, 0, rows, chunk)])
    assert found is not None
    return found


def _whole(path: Path, rows: int, store: Store) -> Any | None:
    """The finished vectors, or None when there are none or they are damaged."""
    if not path.exists():
        return None
    try:
        vectors = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        log.warning("The vectors %s are damaged (%s) and are computed anew.", path, error)
        return None
    if vectors.ndim != 2 or len(vectors) != rows or vectors.dtype != store:
        log.warning("The vectors %s are damaged (%s %s) and are computed anew.", path, vectors.shape, vectors.dtype)
        return None
    return vectors


def _fill(folder: Path, rows: int, store: Store, encode: Encode, chunk: int) -> None:
    partial, done = folder / "partial.npy", folder / "done.json"
    start = _done(partial, done, rows, store)
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


def _done(partial: Path, done: Path, rows: int, store: Store) -> int:
    """How many rows an earlier run has left."""
    try:
        count = int(json.loads(done.read_text(encoding="utf-8"))["rows"])
        vectors = np.load(partial, mmap_mode="r")
    except (OSError, ValueError, EOFError, KeyError, TypeError):
        return 0
    fits = vectors.ndim == 2 and len(vectors) == rows and vectors.dtype == store and 0 < count <= rows
    return count if fits else 0


def _chunks(encode: Encode, start: int, rows: int, chunk: int) -> Iterator[tuple[int, Any]]:
    small = rows - start <= chunk  # a bar would only move when all is done
    with tqdm(total=rows, initial=start, desc="encoding documents", unit="doc", disable=small) as bar:
        for at in range(start, rows, chunk):
            part = encode(at, min(at + chunk, rows))
            yield at, part
            bar.update(len(part))


def _write(path: Path, value: Any) -> None:
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(value), encoding="utf-8")
    aside.replace(path)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Held by one process at a time, and let go by the system when it dies; none where there is no ``fcntl``."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
