"""Vectors of a corpus in shards: ``00000.npy`` and so on, each with a note beside it, and a manifest of all.

``00000.json`` says what a shard was made from (the encoder with its settings, the corpus), its rows, dimensions and
sha256. ``manifest.json`` holds the same of all shards, and is written last. A search maps one shard at a time.

int8 vectors are scaled one by one: each is a float32 scale and D whole numbers from -127 to 127. Their products are
exact over what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lm_eval_rag.harness.common.errors import UserError

Store = Literal["float16", "float32", "int8"]
MANIFEST = "manifest.json"
FORMAT = 2
SHARD = 65_536  # rows; a multiple of the tiles of a search
AGAIN = "Delete the file and run `lm-eval-rag encode` again: it makes only what is missing."


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard.

    Args:
        file: Its name.
        start: Its first row.
        stop: The row after its last.
        dimensions: Of each vector.
        store: Type of its numbers.
        sha256: Of the file.
        made_from: What the vectors depend on: the corpus, the encoder with its settings.
    """

    file: str
    start: int
    stop: int
    dimensions: int
    store: Store
    sha256: str
    made_from: Mapping[str, Any]


class Shards:
    """Vectors (N, D) in shards; slices, lists of rows and ``numpy.asarray`` read them as an array's.

    Args:
        folder: Where the shards are.
        shards: All of them, in order and without a gap.
    """

    def __init__(self, folder: Path, shards: Sequence[Shard]) -> None:
        self.folder, self.shards = folder, tuple(shards)
        self._starts = np.array([shard.start for shard in shards], np.int64)
        self.shape = (shards[-1].stop, shards[0].dimensions)
        self.dtype = np.dtype(np.float16 if shards[0].store == "float16" else np.float32)
        self._open: tuple[int, Any] = (-1, None)  # one shard: mapped pages count as memory of the process

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """The vectors of a slice or a list of rows, (rows, D); of one row, (D,)."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._between(start, stop)
            rows = range(start, stop, step)
        wanted = np.asarray(rows, np.int64)
        flat = np.atleast_1d(wanted)
        if flat.size and not (-len(self) <= flat.min() and flat.max() < len(self)):
            raise IndexError(f"There are {len(self)} vectors.")
        flat = np.where(flat < 0, flat + len(self), flat)
        vectors = np.empty((len(flat), self.shape[1]), self.dtype)
        of = np.searchsorted(self._starts, flat, side="right") - 1
        for number in np.unique(of).tolist():
            here = of == number
            vectors[here] = decoded(self._mapped(number)[flat[here] - self._starts[number]])
        return vectors if wanted.ndim else vectors[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        vectors = self._between(0, len(self))
        return vectors if dtype is None else vectors.astype(dtype, copy=False)

    def place(self, row: int) -> str:
        """Where a row is, in words."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return f"row {row} of the corpus, in {self.folder / self.shards[number].file}"

    def _between(self, start: int, stop: int) -> Any:
        first = max(0, int(np.searchsorted(self._starts, start, side="right")) - 1)
        parts = []
        for number in range(first, len(self.shards)):
            shard = self.shards[number]
            if shard.start >= stop:
                break
            part = self._mapped(number)[max(start, shard.start) - shard.start : min(stop, shard.stop) - shard.start]
            parts.append(decoded(part))
        if not parts:
            return np.empty((0, self.shape[1]), self.dtype)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _mapped(self, number: int) -> Any:
        opened, array = self._open
        if opened != number:
            array = map_shard(self.folder, self.shards[number])
            self._open = (number, array)
        return array


def stored_type(store: Store, dimensions: int) -> np.dtype[Any]:
    """Type of one element of a shard's array: a number, or of int8 a whole vector."""
    if store == "int8":
        return np.dtype([("scale", "<f4"), ("numbers", "i1", (dimensions,))])
    return np.dtype({"float16": "<f2", "float32": "<f4"}[store])


def coded(vectors: Any, store: Store) -> Any:
    """float32 (n, D) as it is stored.

    Raises:
        UserError: A number is NaN, infinite, or too large for the type.
    """
    if store == "int8":
        scale = np.abs(vectors).max(axis=1, initial=0) / np.float32(127)
        stored = np.empty(len(vectors), stored_type(store, vectors.shape[1]))
        stored["scale"], safe = scale, np.where(scale > 0, scale, 1)
        stored["numbers"] = np.rint(np.nan_to_num(vectors / safe[:, None])).clip(-127, 127)
    else:
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(vectors, stored_type(store, vectors.shape[1]))
    if not np.isfinite(vectors).all():
        raise UserError("The encoder gave vectors with NaN or infinity; try retriever_dtype=float32.")
    if store == "float16" and not np.isfinite(stored).all():
        raise UserError("The vectors have numbers above 65,504, the largest of float16: give retriever_store=float32.")
    return stored


def decoded(stored: Any) -> Any:
    """The stored vectors as float16 or float32 (n, D)."""
    if stored.dtype.names is None:
        return stored
    return stored["numbers"].astype(np.float32) * stored["scale"][:, None]


def map_shard(folder: Path, shard: Shard) -> Any:
    """The array of a shard, mapped.

    Raises:
        UserError: The file is missing, cut off, or of another form than its note says.
    """
    path, expected = folder / shard.file, stored_type(shard.store, shard.dimensions)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"The shard {path} is missing or damaged ({why}). {AGAIN}") from None
    shape = (shard.stop - shard.start,) if shard.store == "int8" else (shard.stop - shard.start, shard.dimensions)
    if array.shape != shape or array.dtype != expected:
        raise UserError(f"The shard {path} is damaged: {array.shape} {array.dtype}, noted {shape} {expected}. {AGAIN}")
    return array


def read_note(path: Path) -> Shard | None:
    """What a shard's note says; None if there is no whole one."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        return Shard(**note)
    except (OSError, ValueError, TypeError):
        return None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(value, indent=1), encoding="utf-8")
    temporary.replace(path)


def as_note(shard: Shard) -> dict[str, Any]:
    """The note of a shard, for JSON."""
    return asdict(shard)
