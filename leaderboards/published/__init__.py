"""Numbers that papers print, with their source: see the README in this folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from lm_eval_rag.harness.report.published import PublishedRow, read_published

FOLDER = Path(__file__).parent


def rows(task: str | None = None) -> list[PublishedRow]:
    """The printed numbers of one task, or of all, in the order of the files."""
    return [row for row in _all() if task in (None, row.task)]


@lru_cache(maxsize=1)
def _all() -> tuple[PublishedRow, ...]:
    return read_published(FOLDER)
