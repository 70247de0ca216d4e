"""Writing one shard of vectors, so that a killed process loses one chunk at most.

``00000.partial`` is appended to, and ``00000.done`` says how many of its rows are finished; it is written after them.
At the end the file becomes ``00000.npy``, and its note ``00000.json`` is written. Plain writes, not a map: on a full
disk they are an error, where a map would end the process.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import hash_of
from lm_eval_rag.harness.retrieval.shards import Shard, Store, as_note, coded, stored_type, write_json


@dataclass(frozen=True, slots=True)
class Shardful:
    """What a shard is to hold.

    Args:
        folder: Where it is written.
        name: Its number, of five digits.
        start: Its first row.
        stop: The row after its last.
        store: Type of its numbers.
        made_from: What the vectors depend on.
    """

    folder: Path
    name: str
    start: int
    stop: int
    store: Store
    made_from: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """How many vectors it is to hold."""
        return self.stop - self.start

    @property
    def note_file(self) -> Path:
        """The note that says it is finished."""
        return self.folder / f"{self.name}.json"

    @property
    def partial(self) -> Path:
        """The file while it is written."""
        return self.folder / f"{self.name}.partial"

    @property
    def done(self) -> Path:
        """Says how much of it is written."""
        return self.folder / f"{self.name}.done"


def finished_rows(one: Shardful) -> int:
    """How many rows of a shard a killed run has written."""
    return _resumed(one)[0]


def make(one: Shardful, encode: Callable[[int, int], Any], chunk: int, update: Callable[[int], None]) -> None:
    """Write a shard, from where an earlier run was ended.

    Raises:
        OSError: It cannot be written.
        UserError: ``encode`` gave NaN, another number of vectors, or mixed dimensions.
    """
    rows, dimensions = _resumed(one)
    with one.partial.open("r+b" if rows else "wb") as file:
        if rows:
            file.seek(_size(one, rows, dimensions))
            file.truncate()
        for at in range(one.start + rows, one.stop, chunk):
            part = encoded(encode, at, min(at + chunk, one.stop), one.store)
            width = _width(part)
            if not rows:
                file.write(_header(one, width))
                dimensions = width
            if width != dimensions:
                raise UserError(f"The encoder gave vectors of {dimensions} and of {width} dimensions (row {at}).")
            file.write(part.tobytes())
            file.flush()
            rows += len(part)
            write_json(one.done, {"rows": rows, "dimensions": dimensions, "made_from": one.made_from})
            update(len(part))
        os.fsync(file.fileno())
    final = one.folder / f"{one.name}.npy"
    one.partial.replace(final)
    note = Shard(final.name, one.start, one.stop, dimensions, one.store, hash_of(final), one.made_from)
    write_json(one.note_file, as_note(note))
    one.done.unlink(missing_ok=True)


def encoded(encode: Callable[[int, int], Any], start: int, stop: int, store: Store) -> Any:
    """The vectors of some rows as they are stored.

    Raises:
        UserError: ``encode`` gave NaN or another number of vectors.
    """
    vectors = encode(start, stop)
    if vectors.ndim != 2 or len(vectors) != stop - start:
        raise UserError(
            f"The encoder was given {stop - start} documents (from row {start}) and returned numbers of shape "
            f"{vectors.shape}. It must return one vector each."
        )
    return coded(vectors, store)


def _resumed(one: Shardful) -> tuple[int, int]:
    """(rows, dimensions) that an earlier run has written whole; (0, 0) if there is nothing to build upon."""
    try:
        done = json.loads(one.done.read_text(encoding="utf-8"))
        rows, dimensions = int(done["rows"]), int(done["dimensions"])
        usable = done["made_from"] == one.made_from and 0 < rows <= one.rows
        whole = one.partial.stat().st_size >= _size(one, rows, dimensions)
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0
    return (rows, dimensions) if usable and whole else (0, 0)


def _header(one: Shardful, dimensions: int) -> bytes:
    shape = (one.rows,) if one.store == "int8" else (one.rows, dimensions)
    descr = np.lib.format.dtype_to_descr(stored_type(one.store, dimensions))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue()


def _size(one: Shardful, rows: int, dimensions: int) -> int:
    number = stored_type(one.store, dimensions).itemsize
    return len(_header(one, dimensions)) + rows * number * (1 if one.store == "int8" else dimensions)


def _width(part: Any) -> int:
    return int(part["numbers"].shape[1] if part.dtype.names else part.shape[1])
