"""Content-addressed folders in the cache: named by a hash of their inputs, and either complete or absent.

All built data is written here: corpora, page stores, installed datasets. ``meta.json`` describes a folder's content
and records the sizes of its files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, written_whole
from lm_eval_rag.harness.common.progress import Meter, written

META, CARD = "meta.json", "README.md"
Write = Callable[[Path], Mapping[str, Any]]  # fills an empty folder; returns meta.json without its hash and files
_WAITING: dict[str, Callable[[], object]] = {}  # id of a folder -> what builds it


def content_hash(inputs: Any) -> str:
    """The first 12 hexadecimal digits of the sha256 of a JSON value, with sorted keys."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:12]


def content_folder(name: str, inputs: Any, write: Write) -> str:
    """The id ``<name>/<hash>`` of a folder in the cache, which is written if it does not exist.

    Args:
        inputs: Everything that the folder's content depends on, as a JSON value.
        write: Fills the folder.

    Raises:
        UserError: The folder exists and is damaged.
        MachineError: The folder cannot be written.
    """
    hash = content_hash(inputs)
    folder = cache_dir() / name / hash
    if folder.is_dir():
        check_folder(folder)
    else:
        write_folder(folder, hash, write)
    return f"{name}/{hash}"


def build_when_opened(id: str, build: Callable[[], object]) -> None:
    """Let a folder wait until this process opens it: :func:`build_waiting` then builds it."""
    _WAITING[id] = build


def build_waiting(id: str) -> None:
    """Build a folder that waits for it; nothing for any other.

    Raises:
        UserError: It cannot be built; it waits on.
    """
    if id in _WAITING:
        _WAITING[id]()
        _WAITING.pop(id, None)


def write_folder(folder: Path, hash: str, write: Write) -> None:
    """Write a folder under a temporary name, then rename it; if two processes write it at once, the first wins."""
    with written_whole(folder) as temporary, Meter(f"build of {folder.parent.name}", beside=written(temporary)):
        meta = {**write(temporary), "hash": hash}
        meta["files"] = {
            path.name: path.stat().st_size
            for path in sorted(temporary.iterdir())
            if path.is_file() and path.name != CARD
        }
        (temporary / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")


def check_folder(folder: Path) -> None:
    """Raise a UserError unless every file has its recorded size. Older folders have no recorded sizes."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        sizes = meta.get("files", {}) if meta["hash"] else {}
        wrong = [name for name, size in sizes.items() if (folder / name).stat().st_size != size]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wrong = [f"{META} or a file that it lists ({error})"]
    if wrong:
        raise UserError(
            f"The folder {folder} is damaged: {', '.join(wrong)}. Delete this folder and run again; it will be rebuilt."
        )
