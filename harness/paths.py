"""Where data, corpora and journals lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """``$LM_EVAL_RAG_CACHE``, by default ``~/.cache/lm_eval_rag``; not created here."""
    return Path(os.environ.get("LM_EVAL_RAG_CACHE") or Path.home() / ".cache" / "lm_eval_rag")


def mirror_dir() -> Path | None:
    """``$LM_EVAL_RAG_MIRROR``: a local folder that serves the files of the manifests first, or None."""
    given = os.environ.get("LM_EVAL_RAG_MIRROR")
    return Path(given) if given else None
