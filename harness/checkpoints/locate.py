"""Finds model checkpoints by folder or Hub id, and reads and hashes their files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import hash_of

# Files of a checkpoint in Hugging Face format. Exports to other runtimes and training logs are ignored.
WEIGHTS = (".safetensors", ".bin")
CONTENT = (*WEIGHTS, ".json", ".txt", ".model", ".py")
OTHER_RUNTIMES = ("onnx", "openvino", "coreml", "runs", "checkpoint-*")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on this machine.

    Args:
        folder: Its folder.
        identity: ``org/name@commit`` for a checkpoint from the Hub, else ``sha256:`` and the hash of its files.
    """

    folder: Path
    identity: str

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file of the checkpoint; {} if there is no such file."""
        path = self.folder / name
        try:
            content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except ValueError as error:
            raise UserError(f"{path} is damaged ({error}). Copy or download the checkpoint again.") from None
        return content if isinstance(content, dict) else {}

    def has(self, name: str) -> bool:
        """Whether the checkpoint contains a file of that name."""
        return (self.folder / name).is_file()


def checkpoint(name_or_path: str, kind: str) -> Checkpoint:
    """Find a checkpoint: a local folder, else a Hub id (``org/name`` or ``org/name@revision``), downloaded if needed.

    Args:
        kind: What the checkpoint is used for, for error messages.

    Raises:
        UserError: There is no such folder, and the Hub does not have it or cannot be reached.
    """
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return Checkpoint(folder, f"sha256:{content_hash(folder)}")
    try:
        fetched = fetch_folder(name_or_path, only=[f"*{suffix}" for suffix in CONTENT])
    except UserError as error:
        raise UserError(f"The {kind} {name_or_path!r} is not a local folder and not on the Hub: {error}") from None
    return Checkpoint(fetched, f"{name_or_path.partition('@')[0]}@{fetched.name}")


def load_errors() -> tuple[type[Exception], ...]:
    """The errors that transformers and related libraries raise for a damaged or unsuitable checkpoint."""
    from safetensors import SafetensorError

    return (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, SafetensorError)


def reason(error: BaseException) -> str:
    """What a library's error says, on one line without a full stop: its first line, or all if that ends in a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (" ".join(lines) if lines[0].endswith(":") else lines[0]).rstrip(".")


def content_hash(folder: Path) -> str:
    """Hash of the names and bytes of a checkpoint's files, the same on every machine. A gigabyte takes about a second.

    Raises:
        UserError: The folder contains no checkpoint file.
    """
    files = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        other = any(inside.match(f"{name}/*") for name in OTHER_RUNTIMES)
        if path.suffix in CONTENT and not other and path.is_file():
            files.append((inside.as_posix(), _file_hash(path, path.stat().st_size, path.stat().st_mtime_ns)))
    if not files:
        raise UserError(f"The folder {folder} contains no checkpoint (files that end in {', '.join(CONTENT)}).")
    return hashlib.sha256("".join(f"{name}\0{value}\n" for name, value in files).encode()).hexdigest()[:32]


@lru_cache(maxsize=1024)
def _file_hash(path: Path, size: int, changed: int) -> str:
    """sha256 of a file, cached by size and time of change: a run may open the same checkpoint once per question."""
    return hash_of(path)
