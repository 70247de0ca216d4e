"""The written forms of a report: one renderer per format, by name and by the suffix of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.report.document import Document
from lm_eval_rag.harness.report.report_data import render_csv, render_json
from lm_eval_rag.harness.report.report_html import render_html
from lm_eval_rag.harness.report.report_latex import render_latex
from lm_eval_rag.harness.report.report_markdown import render_markdown
from lm_eval_rag.harness.report.report_text import render

FORMATS: dict[str, Callable[[Document], str]] = {
    "text": render,
    "markdown": render_markdown,
    "html": render_html,
    "latex": render_latex,
    "csv": render_csv,
    "json": render_json,
}
SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
}


def format_of(path: Path) -> str:
    """The format of a file by its suffix.

    Raises:
        UserError: The suffix is that of no format.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise unknown("suffix of --out", path.suffix or path.name, SUFFIXES, "Or give --format.")
    return SUFFIXES[path.suffix.lower()]


def write(text: str, path: Path, option: str) -> None:
    """Write a report to a file.

    Raises:
        UserError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror}. Give {option} a file in an existing folder."
        ) from None
