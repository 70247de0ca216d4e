"""The manifest of vectors in shards: written when all are there, and checked when they are opened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import hash_of
from lm_eval_rag.harness.retrieval.shards import (
    AGAIN,
    FORMAT,
    MANIFEST,
    Shard,
    Shards,
    as_note,
    map_shard,
    write_json,
)


def write_manifest(folder: Path, shards: Sequence[Shard], rows: int) -> Shards:
    """Check all shards against each other, write the manifest, and open them.

    Args:
        rows: Documents of the corpus: as many as there must be vectors.

    Raises:
        UserError: A shard is of another encoder, corpus or dimension, is damaged, or rows are missing.
    """
    checked(folder, shards, rows)
    first = shards[0]
    about = {"format": FORMAT, "made_from": first.made_from, "rows": rows, "dimensions": first.dimensions}
    listed = [{key: value for key, value in as_note(shard).items() if key != "made_from"} for shard in shards]
    write_json(folder / MANIFEST, {**about, "store": first.store, "shards": listed})
    return Shards(folder, shards)


def open_shards(folder: Path, rows: int, expected: Mapping[str, Any] | None = None) -> Shards:
    """The vectors that a manifest names.

    Args:
        rows: Documents of the corpus.
        expected: What they must have been made from, as far as it is given here.

    Raises:
        UserError: The manifest is missing or damaged, or its vectors are others than expected.
    """
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise ValueError(f"format {manifest['format']}, this version reads {FORMAT}")
        made_from = manifest["made_from"]
        shards = [Shard(**shard, made_from=made_from) for shard in manifest["shards"]]
        if len({shard.start for shard in shards}) != len(shards) or not shards:
            raise ValueError("shards are missing or named twice")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"The manifest {path} is missing or damaged ({error}). {AGAIN}") from None
    same_origin(f"The folder {folder}", made_from, made_from if expected is None else expected)
    checked(folder, shards, rows)
    return Shards(folder, shards)


def checked(folder: Path, shards: Sequence[Shard], rows: int) -> None:
    """Check that shards belong together, lie on the disk whole, and have ``rows`` rows without a gap.

    Raises:
        UserError: They do not.
    """
    first, next_row = shards[0], 0
    for shard in shards:
        name = f"The shard {folder / shard.file}"
        same_origin(name, shard.made_from, first.made_from)
        for what in ("dimensions", "store"):
            if getattr(first, what) != getattr(shard, what):
                raise UserError(
                    f"{name} has {what} {getattr(shard, what)}, {first.file} has {getattr(first, what)}. {AGAIN}"
                )
        if shard.start != next_row:
            raise UserError(f"{name} begins at row {shard.start}, and the shard before it ends at {next_row}. {AGAIN}")
        map_shard(folder, shard)
        next_row = shard.stop
    if next_row != rows:
        raise UserError(f"{folder} has {next_row:,} vectors, the corpus {rows:,} documents. {AGAIN}")


def verify(shards: Shards) -> None:
    """Compare each shard's checksum with the manifest's; reads all of them.

    Raises:
        UserError: A shard was changed after it was written.
    """
    for shard in shards.shards:
        path = shards.folder / shard.file
        if hash_of(path) != shard.sha256:
            raise UserError(f"The shard {path} is damaged: its sha256 is not the manifest's. {AGAIN}")


def same_origin(name: str, made_from: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Check what vectors were made from.

    Args:
        name: Of the vectors, for the error.
        expected: What they must have been made from; keys that it lacks may have any value.

    Raises:
        UserError: They were made from something else.
    """
    for key, value in expected.items():
        if made_from.get(key) != value:
            raise UserError(
                f"{name} holds vectors of another {key}: {json.dumps(made_from.get(key))}, not {json.dumps(value)}. "
                "Vectors of several encoders or corpora are not comparable: move the file away."
            )
