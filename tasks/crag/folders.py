"""Folders in the cache that are named by what they are made from, and are whole or not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.errors import UserError
from lm_eval_rag.harness.paths import cache_dir, written_whole

META = "meta.json"


def made(name: str, made_from: Mapping[str, Any], write: Callable[[Path], Mapping[str, Any]]) -> str:
    """The id ``<name>/<hash>`` of a folder, which is written if it is not there.

    Args:
        made_from: All that its content depends on (JSON-able).
        write: Fills an empty folder, and returns what ``meta.json`` says besides.

    Raises:
        UserError: It is there and damaged.
    """
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
    folder = cache_dir() / name / digest
    if folder.is_dir():
        _check(folder)
        return f"{name}/{digest}"
    with written_whole(folder) as beside:
        said = {**made_from, "hash": digest, **write(beside)}
        said["files"] = {path.name: path.stat().st_size for path in sorted(beside.iterdir()) if path.is_file()}
        (beside / META).write_text(json.dumps(said, indent=1), encoding="utf-8")
    return f"{name}/{digest}"


def _check(folder: Path) -> None:
    """Raise unless every file has the size that it was written with."""
    try:
        sizes = json.loads((folder / META).read_text(encoding="utf-8"))["files"]
        wrong = [name for name, size in sizes.items() if (folder / name).stat().st_size != size]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wrong = [f"{META} or a file that it names ({error})"]
    if wrong:
        raise UserError(
            f"The folder {folder} is damaged: {', '.join(wrong)}. Delete this folder and run again: it is then rebuilt."
        )
