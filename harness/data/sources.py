"""Upstream data files, from a local mirror if possible, else from the pinned public URL; the sha256 is always checked.

A manifest is a TOML file with one table per file: ``repository``, ``commit``, ``repository_path``, ``sha256``,
``bytes``, ``licence`` and ``terms``; ``lfs = true`` if the repository keeps the file in Git LFS. ``host`` says where
the file is: ``github`` (default), ``hub`` (a dataset on the Hugging Face Hub, or on ``HF_ENDPOINT``), or ``web``, where
``repository_path`` is the whole address. A file that was derived from public ones and is not published itself has the
host ``mirror``: it is read from ``LM_EVAL_RAG_MIRROR`` alone. ``gzip = true`` if the public file is gzipped; then size
and hash are those of the unpacked file. ``bytes = 0`` means that nobody recorded the size.
A file that fails its check is neither returned nor kept.

A file of known size and hash whose download is cut off is resumed by the next one, if the server can do that.

``md5`` may stand in for an unknown sha256. ``sha256 = "UNVERIFIED"`` without it means that nobody could check the file
when the manifest was written. Such a file is downloaded once, with a warning. Its hash is recorded beside it, and a
later change of the file is an error.
"""

from __future__ import annotations

import gzip
import hashlib
import http
import http.client
import logging
import os
import tempfile
import tomllib
import urllib.parse
import urllib.request
import zlib
from dataclasses import MISSING, dataclass, fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, hash_of, mirror_dir, storing
from lm_eval_rag.harness.common.progress import Meter

logger = logging.getLogger(__name__)

HOST = "https://raw.githubusercontent.com"
LFS_HOST = "https://github.com"  # HOST serves only the pointer files of Git LFS
HUB = "https://huggingface.co"
UNVERIFIED = "UNVERIFIED"
TIMEOUT = 60.0  # seconds without a byte from the server
PIECE = 1 << 20  # bytes
RESUMED = 1 << 24  # bytes; what is left of a shorter download is not worth keeping
Host = Literal["github", "hub", "web", "mirror"]


class UnavailableError(UserError):
    """A source file is in no mirror and cannot be downloaded, or it is not the pinned one."""


@dataclass(frozen=True, slots=True)
class Source:
    """One upstream file.

    Args:
        path: Path in the mirror and in the cache, such as ``icews14/train.txt``.
        repository: ``owner/name`` on the host; for ``web``, who publishes the file.
        commit: The pinned commit; on the Hub, the revision; for ``web``, the release.
        repository_path: Path in the repository; for ``web``, the whole address.
        sha256: Hash of the content, in hexadecimal, or ``UNVERIFIED``.
        bytes: Length of the content; 0 if unknown.
        licence: Licence of the data or of the repository.
        terms: Further terms of use.
        lfs: Whether the repository keeps the file in Git LFS.
        host: Where the repository is.
        gzip: Whether the public file is gzipped.
        md5: Hash that stands in for an unknown sha256.
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
    host: Host = "github"
    gzip: bool = False
    md5: str = ""

    @property
    def verified(self) -> bool:
        """Whether the manifest has a hash of the content."""
        return self.sha256 != UNVERIFIED or bool(self.md5)

    @property
    def pinned(self) -> tuple[str, str]:
        """Algorithm and hash: the sha256, which may be ``UNVERIFIED``, or the md5 in its place."""
        return ("md5", self.md5) if self.sha256 == UNVERIFIED and self.md5 else ("sha256", self.sha256)

    @property
    def resumable(self) -> bool:
        """Whether a download that was cut off can be continued and then checked."""
        return self.verified and self.bytes > 0 and not self.gzip

    @property
    def url(self) -> str:
        """The pinned public address; for a file that is not published, the repositories that it was derived from."""
        if self.host == "mirror":
            return f"{LFS_HOST}/{self.repository}"
        if self.host == "web":
            return self.repository_path
        path = urllib.parse.quote(self.repository_path)
        if self.host == "hub":
            endpoint = (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
            return f"{endpoint}/datasets/{self.repository}/resolve/{self.commit}/{path}"
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
        if table.get("host", "github") not in get_args(Host):
            raise UserError(
                f"The manifest {manifest}, entry {path!r}: host must be one of {', '.join(get_args(Host))}."
            )
    return {path: Source(path=path, **table) for path, table in tables.items()}


def fetch(source: Source) -> Path:
    """Local path of the file with the pinned content: in the mirror, in the cache, or downloaded into the cache.

    Raises:
        UserError: The file in the mirror or on the server is not the pinned one, or there is no mirror and no network.
    """
    mirror = mirror_dir()
    if mirror is not None and (mirrored := mirror / source.path).is_file():
        if _is_right(mirrored, source):
            _warn_unverified(source, mirrored)
            return mirrored
        raise _unavailable(
            source, f"the mirror's {mirrored} has different content ({_measured(mirrored, source.pinned[0])})"
        )
    cached = _cached(source)
    if cached.is_file() and _is_right(cached, source):
        return cached
    _download(source, cached)
    _warn_unverified(source, cached)
    return cached


def sha256_of(source: Source) -> str:
    """The hash of a source's content: the pinned one, or that of the fetched file if the manifest has none.

    Raises:
        UserError: As :func:`fetch`.
    """
    return source.sha256 if source.sha256 != UNVERIFIED else hash_of(fetch(source))


def _cached(source: Source) -> Path:
    """Where a download is kept: a folder named by the content's hash, or by the address where the hash is unknown."""
    place = f"{source.host} {source.repository} {source.commit} {source.repository_path}"
    key = source.pinned[1] if source.verified else hashlib.sha256(place.encode()).hexdigest()
    return cache_dir() / "sources" / key[:16] / Path(source.path).name


def _recorded(path: Path) -> Path:
    """The file that records the hash of an unverified download."""
    return path.with_name(f"{path.name}.sha256")


def _record(source: Source, path: Path, record: Path) -> None:
    """Record the hash of an unverified download; refuse one that differs from what was recorded before."""
    if not record.is_file():
        record.write_text(hash_of(path), encoding="ascii")
    elif record.read_text(encoding="ascii") != hash_of(path):
        raise _unavailable(
            source, f"the server's file has changed since {record} was written; delete that to accept it"
        )


def _warn_unverified(source: Source, path: Path) -> None:
    if not source.verified:
        logger.warning(
            "%s is UNVERIFIED: nobody has checked it. The file %s has %s.", source.path, path, _measured(path)
        )


def _download(source: Source, target: Path) -> None:
    """Download into a temporary file beside ``target``, check it, then rename it."""
    if source.host == "mirror":
        raise _unavailable(source, "it was derived from public files and is not published, so only a mirror has it")
    begun = _begun(target)
    start = begun.stat().st_size if source.resumable and begun.is_file() else 0
    logger.info("fetching %s from %s%s", source.path, source.url, f", from byte {start}" if start else "")
    request = urllib.request.Request(source.url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            resumed = start if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
            _keep(source, gzip.GzipFile(fileobj=response) if source.gzip else response, target, resumed)
    except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
        raise _unavailable(source, f"it is in no local mirror and its download failed ({error})") from None


def _begun(target: Path) -> Path:
    """What an earlier download of ``target`` that was cut off has left."""
    return target.with_name(f".begun-{target.name}")


def _keep(source: Source, response: BinaryIO | gzip.GzipFile, target: Path, start: int = 0) -> None:
    """Write the response in pieces, because a file may be larger than memory; stop once it is too long.

    Args:
        start: How many bytes of the file an earlier download has left; the response begins after them.
    """
    with storing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
        os.close(handle)
    partial, begun = Path(name), _begun(target)
    try:
        if start:
            begun.replace(partial)  # of several processes one continues it
        size = source.bytes or None  # None: nobody has measured it
        with partial.open("ab") as file, Meter(f"download of {source.path}", size, "bytes", start=start) as meter:
            while (size is None or file.tell() <= size) and (piece := response.read(PIECE)):
                with storing(target):
                    file.write(piece)
                meter.update(len(piece))
        _check_whole(source, partial)
        if not _is_right(partial, source):
            measured = _measured(partial, source.pinned[0])
            raise _unavailable(source, f"the server sent different content ({measured})")
        if not source.verified:
            _record(source, partial, _recorded(target))
        partial.replace(target)
        begun.unlink(missing_ok=True)
    finally:
        if partial.is_file() and source.resumable and RESUMED <= partial.stat().st_size < source.bytes:
            partial.replace(begun)
        partial.unlink(missing_ok=True)


def _check_whole(source: Source, partial: Path) -> None:
    """Raise if a download that can be resumed has ended early: a server that goes away is no error of urllib."""
    size = partial.stat().st_size
    if source.resumable and RESUMED <= size < source.bytes:
        raise OSError(f"it ended after {size:,} of {source.bytes:,} bytes; run the same command again to continue it")


def _is_right(path: Path, source: Source) -> bool:
    if source.bytes and path.stat().st_size != source.bytes:
        return False
    if source.verified:
        algorithm, expected = source.pinned
        return hash_of(path, algorithm) == expected
    recorded = _recorded(path)
    return not recorded.is_file() or hash_of(path) == recorded.read_text(encoding="ascii")


def _measured(path: Path, algorithm: str = "sha256") -> str:
    return f"{path.stat().st_size} bytes, {algorithm} {hash_of(path, algorithm)}"


def _unavailable(source: Source, reason: str) -> UnavailableError:
    mirror = mirror_dir()
    return UnavailableError(
        f"The source file {source.path} is not available: {reason}. Needed: {source.bytes or 'unknown'} bytes, "
        f"{' '.join(source.pinned)}, public at {source.url}. Connect to the network, or set LM_EVAL_RAG_MIRROR (now "
        f"{mirror or 'not set'}) to a folder that contains {source.path}."
    )
