"""Where data, corpora and journals lie on this machine, and what is said of files that cannot be read or written."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lm_eval_rag.harness.common.errors import MachineError, UserError

CACHE, MIRROR = "LM_EVAL_RAG_CACHE", "LM_EVAL_RAG_MIRROR"
# What errors of libraries say that are no OSError. The last three are torch.save's, which drops the reason: its writer
# of archives finds fewer bytes in the file than it wrote (PyTorch, caffe2/serialize/inline_container.cc).
FULL = ("No space left on device", "disk is full", "quota exceeded", ". unexpected pos ",
        "PytorchStreamWriter failed writing", "iostream error")  # fmt: skip


def cache_dir() -> Path:
    """``$LM_EVAL_RAG_CACHE``, by default ``~/.cache/lm_eval_rag``; not created here.

    Raises:
        UserError: It begins with ``~``, or is not set, and there is no home folder.
    """
    return _folder(CACHE) or _expanded(Path("~/.cache/lm_eval_rag"), CACHE)


def mirror_dir() -> Path | None:
    """``$LM_EVAL_RAG_MIRROR``: a local folder that serves the files of the manifests first, or None."""
    return _folder(MIRROR)


def hash_of(path: Path, algorithm: str = "sha256") -> str:
    """The hash of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _folder(variable: str) -> Path | None:
    given = os.environ.get(variable)
    return _expanded(Path(given), variable) if given else None


def _expanded(path: Path, variable: str) -> Path:
    """With the home folder for ``~``, which shells leave as it is within quotes and after ``env``."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise UserError(f"{variable}: {path} has no meaning here ({error}) Set {variable} to a whole path.") from None


def full_disk(error: BaseException) -> bool:
    """Whether an error, or one that led to it, says that a disk is full, whichever library raised it."""
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in chain:
        chain.append(at)
        at = at.__cause__ or at.__context__
    return any(
        getattr(one, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or any(text in str(one) for text in FULL)
        for one in chain
    )


@contextmanager
def storing(path: Path, advice: str | Callable[[], str] = "") -> Iterator[None]:
    """Turns errors of writing ``path`` into one line.

    Args:
        advice: What to do, as a sentence, or a function that gives it after the error; by default about the cache.

    Raises:
        MachineError: The disk is full, or the path cannot be written.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # polars has a class of its own for a full disk
        if not isinstance(error, (OSError, sqlite3.Error)) and not full_disk(error):
            raise
        why = "the disk is full" if full_disk(error) else error
        told = advice() if callable(advice) else advice
        told = told or f"Free space or give rights there, or set {CACHE} to another folder."
        raise MachineError(f"{path} cannot be written: {why}. {told}") from None


def replace_text(path: Path, text: str) -> None:
    """Write a text file at once: where writing fails, such as on a full disk, the old file stays."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def output_folder(path: Path, option: str = "--out") -> Path:
    """The folder of an option, created; checked before the work whose results go there.

    Raises:
        UserError: It cannot be created or written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except FileExistsError:
        raise UserError(f"{option} {path} is a file. Give a folder.") from None
    except OSError as error:
        kind = MachineError if full_disk(error) else UserError
        raise kind(
            f"{option} {path} cannot be written: {error.strerror}. Give a folder where files can be created."
        ) from None


def read_text(path: Path, advice: str) -> str:
    """The text of a UTF-8 file; devices are refused, because some never end.

    Args:
        advice: What to give, as a sentence, where there is a file, but not of this kind.

    Raises:
        UserError: It is missing, a device, cannot be read, or is not UTF-8.
    """
    try:
        if path.is_char_device() or path.is_block_device():
            raise UserError(f"{path} is a device, not a file. {advice}")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path} cannot be read: it does not exist. Check the path.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}. {advice}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error}. {advice}") from None


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A folder to write into that becomes ``folder`` at the end: readers see all of it or nothing.

    Of two writers at once the first wins, and the second's work is dropped: the content follows from the name.

    Raises:
        MachineError: It cannot be written.
    """
    with storing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            yield beside
            beside.chmod(0o755)
            beside.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)
