"""The files of a publication: their content, the excluded files, and checks for secrets, programs and links."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lm_eval_rag.harness.common.errors import UserError

# excluded from a model's folder: training state, possible secrets, hidden files
LEFT_OUT = (
    ".*", "*/.*", "checkpoint-*/*", "*optimizer*.pt", "*optimizer*.bin", "scheduler.pt", "rng_state*", "scaler.pt",
    "trainer_state.json", "training_args.bin", "state.pt", "state/*", "*.log", "*__pycache__/*", "*.pem", "*.key",
    "*id_rsa*", "*.env", "runs/*", "wandb/*",
)  # fmt: skip
SECRETS = {
    "a Hugging Face token": rb"(?<!\w)hf_[A-Za-z0-9]{30,}",
    "an API key": rb"(?<![\w-])sk-[\w-]{20,}",
    "a GitHub token": rb"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{30,})",
    "a GitLab token": rb"(?<!\w)glpat-[\w-]{20,}",
    "an AWS key": rb"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "a Google key": rb"(?<!\w)AIza[\w-]{35}",
    "a Slack token": rb"(?<!\w)xox[abprs]-[\w-]{10,}",
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
PICKLES = frozenset({".bin", ".ckpt", ".dill", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})
EXECUTABLES = frozenset((
    ".bash", ".bat", ".cmd", ".com", ".csh", ".dll", ".dylib", ".egg", ".exe", ".htm", ".html", ".ipynb", ".jar", ".js",
    ".mjs", ".msi", ".pl", ".ps1", ".py", ".pyc", ".pyd", ".pyw", ".pyz", ".rb", ".scr", ".sh", ".so", ".vbs", ".wasm",
    ".whl", ".zsh",
))  # fmt: skip
STARTS = {  # first bytes of a file of any name
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"#!": "a script",
    b"PK\x03\x04": "an archive, as torch saves pickles",
    **{bytes((0x80, protocol)): "a pickle" for protocol in range(2, 6)},
}
SECRET_NAMES = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL", re.IGNORECASE)
SHORTEST = 12  # minimum length in characters of a variable's value that is searched for


@dataclass(frozen=True, slots=True)
class Item:
    """One file as it would be published.

    Args:
        path: Path in the repository.
        content: The local file, or its bytes.
        size: Size in bytes.
        sha256: Hash of the content, in hexadecimal.
    """

    path: str
    content: Path | bytes
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, content: Path | bytes) -> Item:
        """An item with its size and hash."""
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            return cls(path, content, size, hashlib.file_digest(file, "sha256").hexdigest())


def folder_items(folder: Path) -> tuple[list[Item], list[str]]:
    """The files of a model's folder, sorted by path, and the excluded paths (``LEFT_OUT``).

    Raises:
        UserError: There is no such folder, it has no file to publish, or a link in it leads out of it.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}. Give the folder of a trained model.")
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if _is_entry(path))
    left_out = [path for path in paths if any(fnmatch(path, pattern) for pattern in LEFT_OUT)]
    kept = [path for path in paths if path not in left_out]
    refuse_links_out(folder, kept)
    items = [Item.of(path, folder / path) for path in kept if (folder / path).is_file()]
    if not items:
        raise UserError(f"The folder {folder} contains no file to publish.")
    return items, left_out


def _is_entry(path: Path) -> bool:
    """A file, or a link to anything: links to folders are not followed, and must not be left out in silence."""
    return path.is_file() or path.is_symlink()


def refuse_links_out(folder: Path, paths: Iterable[str]) -> None:
    """Raise a UserError for paths that lead out of the folder: they may publish any file of this machine."""
    root = folder.resolve()
    outside = [path for path in paths if not (folder / path).resolve().is_relative_to(root)]
    if outside:
        raise UserError(
            f"Not published, because these lead out of {folder}: {', '.join(outside)}. Put the files themselves there, "
            "or remove the links."
        )


def refuse_programs(items: Iterable[Item]) -> None:
    """Raise a UserError for files that run code when they are opened or loaded, by their names or first bytes."""
    programs = [f"{item.path} ({kind})" for item in items if (kind := _program(item))]
    if programs:
        raise UserError(
            f"Not published, because loading these runs code: {', '.join(programs)}. Save weights as safetensors, and "
            "remove the rest from the folder."
        )


def _program(item: Item) -> str | None:
    suffix = PurePosixPath(item.path).suffix.lower()
    if suffix in PICKLES:
        return "may be a pickle"
    if suffix in EXECUTABLES:
        return "a program"
    if not item.size:
        return None
    with _bytes(item.content) as content:
        return next((kind for start, kind in STARTS.items() if content[: len(start)] == start), None)


def refuse_secrets(items: Iterable[Item]) -> None:
    """Search the bytes of all items for keys and tokens: known patterns, and values of this process's variables.

    Compressed content (Parquet pages, archives) is not decompressed.

    Raises:
        UserError: A secret was found. The message has file, position and kind, but not the secret.
    """
    values = list(_own_secrets())
    secrets = [f"{item.path}, byte {at}: {kind}" for item in items for kind, at in _secrets(item, values)]
    if secrets:
        raise UserError(f"Not published, because it contains secrets: {'; '.join(secrets)}. Remove them and run again.")


def _own_secrets() -> Iterator[tuple[str, bytes]]:
    from huggingface_hub import get_token

    values = {name: value for name, value in os.environ.items() if SECRET_NAMES.search(name)}
    values["the Hub token that is in use"] = get_token() or ""
    for name, value in values.items():
        if len(value) >= SHORTEST and not value.startswith("/"):  # a path to a secret is not a secret
            yield f"the value of {name}" if name in os.environ else name, value.encode()


def _secrets(item: Item, values: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, int]]:
    if not item.size:
        return
    with _bytes(item.content) as content:
        for kind, pattern in SECRETS.items():
            if match := re.search(pattern, content):
                yield kind, match.start()
        for kind, value in values:
            if match := re.search(re.escape(value), content):
                yield kind, match.start()


@contextmanager
def _bytes(content: Path | bytes) -> Iterator[bytes | mmap]:
    if isinstance(content, bytes):
        yield content
        return
    file: BinaryIO
    with content.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        yield mapped
