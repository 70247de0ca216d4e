"""Where data, corpora and journals lie on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """``$LM_EVAL_RAG_CACHE``, by default ``~/.cache/lm_eval_rag``; not created here."""
    return Path(os.environ.get("LM_EVAL_RAG_CACHE") or Path.home() / ".cache" / "lm_eval_rag")


def mirror_dir() -> Path | None:
    """``$LM_EVAL_RAG_MIRROR``: a local folder that serves the files of the manifests first, or None."""
    given = os.environ.get("LM_EVAL_RAG_MIRROR")
    return Path(given) if given else None


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A folder to write into that becomes ``folder`` at the end: readers see all of it or nothing.

    Of two writers at once the first wins, and the second's work is dropped: the content follows from the name.

    Raises:
        OSError: It cannot be written.
    """
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
