"""Model checkpoints by folder or Hub id: where they lie on this machine, and what they hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.common.errors import UserError

# What makes a checkpoint in Hugging Face format; exports to other runtimes and training logs are left aside.
WEIGHTS = (".safetensors", ".bin")
CONTENT = (*WEIGHTS, ".json", ".txt", ".model", ".py")
OTHER_RUNTIMES = ("onnx", "openvino", "coreml", "runs", "checkpoint-*")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on this machine.

    Args:
        folder: Where it lies.
        identity: ``org/name@commit`` of one from the Hub, else ``sha256:`` and the hash of its files.
    """

    folder: Path
    identity: str

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file of the checkpoint; {} when it has none of that name."""
        path = self.folder / name
        try:
            found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except ValueError as error:
            raise UserError(f"{path} is damaged ({error}). Copy or download the checkpoint again.") from None
        return found if isinstance(found, dict) else {}

    def has(self, name: str) -> bool:
        """Whether it holds a file of that name."""
        return (self.folder / name).is_file()


def checkpoint(given: str, kind: str) -> Checkpoint:
    """Find a checkpoint: a local folder, else a Hub id (``org/name`` or ``org/name@revision``), downloaded if need be.

    Args:
        kind: What it is to be, for the message.

    Raises:
        UserError: No such folder, and the Hub does not have it or cannot be reached.
    """
    folder = Path(given).expanduser()
    if folder.is_dir():
        return Checkpoint(folder, f"sha256:{content_hash(folder)}")
    try:
        found = fetch_folder(given, only=[f"*{suffix}" for suffix in CONTENT])
    except UserError as error:
        raise UserError(f"The {kind} {given!r} is neither a folder here nor to be had from the Hub: {error}") from None
    return Checkpoint(found, f"{given.partition('@')[0]}@{found.name}")


def load_errors() -> tuple[type[Exception], ...]:
    """What transformers and its kin raise for a checkpoint that is damaged or of another kind."""
    from safetensors import SafetensorError

    return (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, SafetensorError)


def content_hash(folder: Path) -> str:
    """Hash of the names and bytes of a checkpoint's files, the same on every machine; a gigabyte takes about a second.

    Raises:
        UserError: The folder holds no such file.
    """
    files = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        other = any(inside.match(f"{name}/*") for name in OTHER_RUNTIMES)
        if path.suffix in CONTENT and not other and path.is_file():
            files.append((inside.as_posix(), _file_hash(path, path.stat().st_size, path.stat().st_mtime_ns)))
    if not files:
        raise UserError(f"The folder {folder} holds no checkpoint (files that end in {', '.join(CONTENT)}).")
    return hashlib.sha256("".join(f"{name}\0{value}\n" for name, value in files).encode()).hexdigest()[:32]


@lru_cache(maxsize=1024)
def _file_hash(path: Path, size: int, changed: int) -> str:
    """sha256 of a file, read once while size and time stay: every question's own pages open the checkpoint anew."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
