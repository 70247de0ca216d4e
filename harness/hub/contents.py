"""The files of a publication: what they hold, what is left out, and that no secret is among them."""

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
from pathlib import Path
from typing import BinaryIO

from lm_eval_rag.harness.common.errors import UserError

# of a model's folder: what training needs to go on, what may be secret, what is hidden
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
SECRET_NAMES = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL", re.IGNORECASE)
SHORTEST = 12  # characters of a variable's value that is looked for


@dataclass(frozen=True, slots=True)
class Item:
    """One file as it would be published.

    Args:
        path: In the repository.
        content: The local file, or the bytes themselves.
        size: In bytes.
        sha256: In hexadecimal.
    """

    path: str
    content: Path | bytes
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, content: Path | bytes) -> Item:
        """An item with its size and sum."""
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            return cls(path, content, size, hashlib.file_digest(file, "sha256").hexdigest())


def folder_items(folder: Path) -> tuple[list[Item], list[str]]:
    """The files of a model's folder, sorted by path, and the paths that are left out (``LEFT_OUT``).

    Raises:
        UserError: There is no such folder, or no file in it to publish.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}. Give the folder of a trained model.")
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    left_out = [path for path in paths if any(fnmatch(path, pattern) for pattern in LEFT_OUT)]
    items = [Item.of(path, folder / path) for path in paths if path not in left_out]
    if not items:
        raise UserError(f"The folder {folder} holds no file to publish.")
    return items, left_out


def refuse_secrets(items: Iterable[Item]) -> None:
    """Look for keys and tokens, known forms and the values of this process's own variables, in the bytes of all items.

    What lies compressed inside a file (Parquet pages, archives) is not unpacked.

    Raises:
        UserError: Names files, places and kinds, not the secrets.
    """
    own = list(_own_secrets())
    found = [f"{item.path}, byte {at}: {what}" for item in items for what, at in _secrets(item, own)]
    if found:
        raise UserError(f"Not published, since it holds secrets: {'; '.join(found)}. Remove them and run again.")


def _own_secrets() -> Iterator[tuple[str, bytes]]:
    from huggingface_hub import get_token

    values = {name: value for name, value in os.environ.items() if SECRET_NAMES.search(name)}
    values["the Hub token that is in use"] = get_token() or ""
    for name, value in values.items():
        if len(value) >= SHORTEST and not value.startswith("/"):  # a path is where a secret lies, not the secret
            yield f"the value of {name}" if name in os.environ else name, value.encode()


def _secrets(item: Item, own: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, int]]:
    if not item.size:
        return
    with _bytes(item.content) as content:
        for what, pattern in SECRETS.items():
            if match := re.search(pattern, content):
                yield what, match.start()
        for what, value in own:
            if match := re.search(re.escape(value), content):
                yield what, match.start()


@contextmanager
def _bytes(content: Path | bytes) -> Iterator[bytes | mmap]:
    if isinstance(content, bytes):
        yield content
        return
    file: BinaryIO
    with content.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        yield mapped
