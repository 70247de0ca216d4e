"""A report as plain text: aligned tables of at most 120 characters per line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from lm_eval_rag.harness.report.document import Document, Section
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.table import printable, table

WIDTH = 118


def render(document: Document) -> str:
    """The whole text; the last paragraphs explain the numbers."""
    facts = "\n".join(wrapped(f"{name}: {value}") for name, value in document.facts)
    notes = "\n".join(map(wrapped, document.notes))
    return "\n\n".join([*map(_section, document.sections), facts, notes]) + "\n"


def _section(section: Section) -> str:
    title = printable(section.title)
    verdicts = ["\n".join(map(wrapped, section.verdicts))] if section.verdicts else []
    parts = [f"{title}\n{'=' * len(title)}", *verdicts, *(text for grid in section.grids for text in _grid(grid))]
    return "\n\n".join([*parts, *(["\n".join(map(wrapped, section.missing))] if section.missing else [])])


def _grid(grid: Grid) -> Iterable[str]:
    """The table, as several under each other if it is too wide."""
    parts = list(_parts(grid))
    for number, part in enumerate(parts, start=1):
        yield "\n".join([part, *(map(wrapped, grid.notes) if number == len(parts) else ())])


def _parts(grid: Grid) -> Iterable[str]:
    columns = [list(column) for column in zip(grid.head, *grid.rows, strict=True)]
    if grid.grouped:  # a repeated name is shown once
        names = columns[0]
        columns[0] = ["" if i > 1 and name == names[i - 1] else name for i, name in enumerate(names)]
    fixed, rest = columns[: grid.fixed], columns[grid.fixed :]
    part: list[list[str]] = []
    for column in rest:
        if fixed and part and _width([*fixed, *part, column]) > WIDTH:
            yield _joined([*fixed, *part], grid.left)
            part = []
        part.append(column)
    yield _joined([*fixed, *part], grid.left)


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(len(printable(text)) for text in column) + 2 for column in columns) - 2


def _joined(columns: Iterable[Iterable[str]], left: Iterable[int]) -> str:
    head, *rows = zip(*columns, strict=True)
    return table(head, rows, left=set(left))


def wrapped(text: str) -> str:
    """A paragraph of at most 118 characters per line, without control characters."""
    return textwrap.fill(printable(text), WIDTH, subsequent_indent="  ")
