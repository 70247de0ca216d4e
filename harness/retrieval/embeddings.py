"""Document vectors on disk: computed once, shard by shard; a killed run is resumed.

Several processes may share the shards of a corpus: each shard has a lock, and a process that finds a finished shard
goes on to the next one. How one shard is written: :mod:`lm_eval_rag.harness.retrieval.shard_file`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.locks import locked
from lm_eval_rag.harness.common.paths import full_disk, storing
from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.retrieval import shards as layout
from lm_eval_rag.harness.retrieval.manifest import open_shards, same_origin, write_manifest
from lm_eval_rag.harness.retrieval.shard_file import Shardful, encoded, finished_rows, make
from lm_eval_rag.harness.retrieval.shards import MANIFEST, Shard, Store, decoded, map_shard, read_note

log = logging.getLogger(__name__)
Encode = Callable[[int, int], Any]
CHUNK = 1024  # rows after which the progress is saved and shown
RESUMED = "Free space, or set LM_EVAL_RAG_CACHE to another folder. What is finished is kept, and the next run resumes."


def stored_vectors(
    folder: Path, rows: int, store: Store, encode: Encode, note: Mapping[str, Any], chunk: int = CHUNK
) -> Any:
    """The vectors of all rows, as :class:`Shards`; in memory if they are few and the folder cannot be written.

    Args:
        folder: A folder for these vectors alone; created if it is missing.
        rows: Number of documents.
        store: Type of the stored numbers.
        encode: ``encode(start, stop)`` returns the vectors of these rows, of shape (stop - start, dimensions).
        note: What the vectors depend on, stored beside them; a JSON object.

    Raises:
        UserError: Shards do not belong together, or ``encode`` gave NaN or another number of vectors.
        MachineError: The disk is full, or the folder cannot be written and there is more than one shard.
    """
    try:
        opened = _opened(folder, rows, note)
        return fill(folder, rows, store, encode, note, chunk) if opened is None else opened
    except OSError as error:
        if rows > layout.SHARD or full_disk(error):
            with storing(folder, RESUMED):
                raise
        log.warning("Vectors cannot be stored in %s (%s). The next run computes them again.", folder, error)
        spans = ((at, min(at + chunk, rows)) for at in range(0, rows, chunk))
        return decoded(np.concatenate([encoded(encode, start, stop, store) for start, stop in spans]))


def fill(
    folder: Path,
    rows: int,
    store: Store,
    encode: Encode,
    note: Mapping[str, Any],
    chunk: int = CHUNK,
    share: tuple[int, int] = (1, 1),
    size: int | None = None,
) -> Any | None:
    """Make the shards that are missing: all, or those of one of several processes.

    Args:
        share: (i, n): every n-th shard from the i-th, i from 1.
        size: Rows of a shard; None for 65,536.

    Returns:
        The vectors if all shards are there at the end, else None.

    Raises:
        OSError: The folder cannot be written.
        UserError: As :func:`stored_vectors`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = _wanted(folder, rows, store, note, size or layout.SHARD)
    own = wanted[share[0] - 1 :: share[1]]
    ready = {one.name for one in own if _finished(one)}
    done = sum(one.rows if one.name in ready else finished_rows(one) for one in own)
    with Meter("encoding of documents", sum(one.rows for one in own), "documents", start=done) as meter:
        for one in own:
            if one.name not in ready:
                with locked(folder / f"{one.name}.lock"):
                    if _finished(one) is None:
                        make(one, encode, chunk, meter.update)
    shards = [shard for one in wanted if (shard := _finished(one)) is not None]
    if len(shards) < len(wanted):
        return None
    with locked(folder / "lock"):
        return write_manifest(folder, shards, rows)


def unfinished(folder: Path, rows: int, store: Store, note: Mapping[str, Any]) -> list[Shardful | None]:
    """All shards in order; None for those that are finished.

    Raises:
        UserError: A shard was made from something else.
    """
    return [None if _finished(one) else one for one in _wanted(folder, rows, store, note, layout.SHARD)]


def _wanted(folder: Path, rows: int, store: Store, note: Mapping[str, Any], size: int) -> list[Shardful]:
    spans = [(start, min(start + size, rows)) for start in range(0, rows, size)]
    return [Shardful(folder, f"{i:05}", start, stop, store, note) for i, (start, stop) in enumerate(spans)]


def _opened(folder: Path, rows: int, note: Mapping[str, Any]) -> Any | None:
    """The vectors of an earlier run; None if they are missing or damaged."""
    if not (folder / MANIFEST).exists():
        return None
    try:
        return open_shards(folder, rows, note)
    except UserError as error:
        log.warning("%s They are looked at one by one; what is damaged is computed again.", error)
        (folder / MANIFEST).unlink(missing_ok=True)
        return None


def _finished(one: Shardful) -> Shard | None:
    """A shard that an earlier run finished; None if it is missing or damaged.

    Raises:
        UserError: It was made from something else.
    """
    shard = read_note(one.note_file)
    if shard is None:
        return None
    same_origin(f"The shard {one.folder / shard.file}", shard.made_from, one.made_from)
    try:
        if (shard.start, shard.stop, shard.store) != (one.start, one.stop, one.store):
            raise UserError(f"The note {one.note_file} is of other rows or numbers.")
        map_shard(one.folder, shard)
    except UserError as error:
        log.warning("%s It is computed again.", error)
        one.note_file.unlink(missing_ok=True)
        return None
    return shard
