"""Folders in the cache that are named by a hash of what they are made from, and are whole or absent.

The one writer of built data: corpora, page stores, installed sets. ``meta.json`` says what a folder holds, and with
which sizes its files were written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, written_whole

META, CARD = "meta.json", "README.md"
Write = Callable[[Path], Mapping[str, Any]]  # fills an empty folder; returns what meta.json says besides hash and files


def content_hash(made_from: Any) -> str:
    """The first 12 hexadecimal digits of the sha256 of a JSON-able value; keys sorted."""
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]


def content_folder(name: str, made_from: Any, write: Write) -> str:
    """The id ``<name>/<hash>`` of a folder of the cache, which is written if it is not there.

    Args:
        made_from: All that its content depends on (JSON-able).
        write: Fills it.

    Raises:
        UserError: It is there and damaged.
        OSError: It cannot be written.
    """
    hash = content_hash(made_from)
    folder = cache_dir() / name / hash
    if folder.is_dir():
        check_folder(folder)
    else:
        write_folder(folder, hash, write)
    return f"{name}/{hash}"


def write_folder(folder: Path, hash: str, write: Write) -> None:
    """Write a folder beside its place, then give it its name; of two writers at once the first wins."""
    with written_whole(folder) as beside:
        meta = {**write(beside), "hash": hash}
        meta["files"] = {
            path.name: path.stat().st_size for path in sorted(beside.iterdir()) if path.is_file() and path.name != CARD
        }
        (beside / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")


def check_folder(folder: Path) -> None:
    """Raise a UserError unless every file has the size with which it was written; older folders name no sizes."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        sizes = meta.get("files", {}) if meta["hash"] else {}
        wrong = [name for name, size in sizes.items() if (folder / name).stat().st_size != size]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wrong = [f"{META} or a file that it names ({error})"]
    if wrong:
        raise UserError(
            f"The folder {folder} is damaged: {', '.join(wrong)}. Delete this folder and run again: it is then rebuilt."
        )
