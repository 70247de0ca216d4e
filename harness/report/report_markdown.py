"""A report as Markdown (the tables of GitHub)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lm_eval_rag.harness.report.document import Document
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.table import printable

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def escaped(text: str) -> str:
    """The text such that Markdown shows it as it is, also in a cell of a table."""
    return SPECIAL.sub(r"\\\1", printable(text))


def render_markdown(document: Document) -> str:
    """The whole document."""
    parts = [f"# {escaped(document.title)}", *(f"- {escaped(f'{name}: {value}')}" for name, value in document.facts)]
    for section in document.sections:
        parts += ["", f"## {escaped(section.title)}"]
        parts += ["", *(f"- {escaped(text)}" for text in section.verdicts)] if section.verdicts else []
        for grid in section.grids:
            parts += ["", f"### {escaped(grid.title)}", "", *_rows(grid.narrow())]
            parts += [line for note in grid.notes for line in ("", escaped(note))]
        parts += [line for text in section.missing for line in ("", escaped(text))]
    parts += ["", "## How to read it"] + [line for note in document.notes for line in ("", escaped(note))]
    return "\n".join(parts) + "\n"


def _rows(grid: Grid) -> Iterable[str]:
    yield _row(grid.head)
    yield "| " + " | ".join("---" if i in grid.left else "---:" for i in range(len(grid.head))) + " |"
    yield from map(_row, grid.rows)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |"
