"""Upstream data files, from a local mirror if possible, else from the pinned public URL; the sha256 is always checked.

A manifest is a TOML file with one table per file: ``repository``, ``commit``, ``repository_path``, ``sha256``,
``bytes``, ``licence`` and ``terms``; ``lfs = true`` if the repository keeps the file in Git LFS.
A file that fails its check is neither returned nor kept.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import os
import tempfile
import tomllib
import urllib.parse
import urllib.request
from dataclasses import MISSING, dataclass, fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, mirror_dir, storing
from lm_eval_rag.harness.common.progress import Meter

logger = logging.getLogger(__name__)

HOST = "https://raw.githubusercontent.com"
LFS_HOST = "https://github.com"  # HOST serves only the pointer files of Git LFS
TIMEOUT = 60.0  # seconds without a byte from the server
PIECE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Source:
    """One upstream file.

    Args:
        path: Path in the mirror and in the cache, such as ``icews14/train.txt``.
        repository: ``owner/name`` on GitHub.
        commit: The pinned commit.
        repository_path: Path in the repository.
        sha256: Hash of the content, in hexadecimal.
        bytes: Length of the content.
        licence: Licence of the data or of the repository.
        terms: Further terms of use.
        lfs: Whether the repository keeps the file in Git LFS.
    """

    path: str
    repository: str
    commit: str
    repository_path: str
    sha256: str
    bytes: int
    licence: str
    terms: str
    lfs: bool = False

    @property
    def url(self) -> str:
        """The pinned public address."""
        path = urllib.parse.quote(self.repository_path)
        if self.lfs:
            return f"{LFS_HOST}/{self.repository}/raw/{self.commit}/{path}"
        return f"{HOST}/{self.repository}/{self.commit}/{path}"


def read_manifest(manifest: Traversable) -> dict[str, Source]:
    """The sources of a manifest by path, in file order.

    Raises:
        UserError: The manifest is missing, is not TOML, or an entry has a missing or unknown field.
    """
    try:
        tables = tomllib.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"The manifest {manifest} cannot be read: {error}.") from None
    allowed = {field.name for field in fields(Source)} - {"path"}
    needed = {field.name for field in fields(Source) if field.default is MISSING} - {"path"}
    for path, table in tables.items():
        if not isinstance(table, dict) or not needed <= set(table) <= allowed:
            raise UserError(f"The manifest {manifest}, entry {path!r}, must hold exactly: {', '.join(sorted(needed))}.")
    return {path: Source(path=path, **table) for path, table in tables.items()}


def fetch(source: Source) -> Path:
    """Local path of the file with the pinned content: in the mirror, in the cache, or downloaded into the cache.

    Raises:
        UserError: The file in the mirror or on the server is not the pinned one, or there is no mirror and no network.
    """
    mirror = mirror_dir()
    if mirror is not None and (mirrored := mirror / source.path).is_file():
        if _is_right(mirrored, source):
            return mirrored
        raise _unavailable(source, f"the mirror's {mirrored} has different content ({_measured(mirrored)})")
    cached = cache_dir() / "sources" / source.sha256[:16] / Path(source.path).name
    if cached.is_file() and _is_right(cached, source):
        return cached
    _download(source, cached)
    return cached


def _download(source: Source, target: Path) -> None:
    """Download into a temporary file beside ``target``, check it, then rename it."""
    logger.info("fetching %s from %s", source.path, source.url)
    try:
        with urllib.request.urlopen(source.url, timeout=TIMEOUT) as response:
            _keep(source, response, target)
    except (OSError, http.client.HTTPException) as error:
        raise _unavailable(source, f"it is in no local mirror and its download failed ({error})") from None


def _keep(source: Source, response: BinaryIO, target: Path) -> None:
    """Write the response in pieces, because a file may be larger than memory; stop once it is too long."""
    with storing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, Meter(f"download of {source.path}", source.bytes, "bytes") as meter:
            while file.tell() <= source.bytes and (piece := response.read(PIECE)):
                with storing(target):
                    file.write(piece)
                meter.update(len(piece))
        if not _is_right(partial, source):
            raise _unavailable(source, f"the server sent different content ({_measured(partial)})")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_right(path: Path, source: Source) -> bool:
    return path.stat().st_size == source.bytes and _digest(path) == source.sha256


def _measured(path: Path) -> str:
    return f"{path.stat().st_size} bytes, sha256 {_digest(path)}"


def _unavailable(source: Source, reason: str) -> UserError:
    mirror = mirror_dir()
    return UserError(
        f"The source file {source.path} is not available: {reason}. Needed: {source.bytes} bytes, sha256 "
        f"{source.sha256}, public at {source.url}. Connect to the network, or set LM_EVAL_RAG_MIRROR (now "
        f"{mirror or 'not set'}) to a folder that contains {source.path}."
    )
