"""Tables in Markdown, as in appendix C of the paper, with these departures:

- a cell that spans columns or rows is repeated in each of them, but a cell as wide as the table is there once;
- rows are padded to one width, and empty rows and columns are dropped;
- "|" in a cell is escaped, words of neighbouring elements are separated, and a caption is kept.

As in the paper, the first row is the header, the page's name is above, and a table without text is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PIPE = r"\|"
RULE = "\n| ---"  # below the header
MAX_ROWS, MAX_COLUMNS = 2000, 100
MAX_TABLE_LENGTH = 4000  # Table 5; its code counts characters


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text on one line, and the columns and rows that it spans (0 rows: all that follow)."""

    text: str
    columns: int = 1
    rows: int = 1


def markdown(rows: Sequence[Sequence[Cell]], caption: str = "") -> str:
    """The table in Markdown, at most ``MAX_ROWS`` x ``MAX_COLUMNS``; "" if it has no text."""
    grid = _without_blanks(_grid(rows))
    if not any(character not in "|-" for row in grid for text in row for character in text):
        return ""
    lines = [f"| {' | '.join(text.replace('|', PIPE) for text in _once(row))} |" for row in grid]
    lines.insert(1, f"| {' | '.join('---' for _ in grid[0])} |")
    return "\n".join([caption, *lines] if caption else lines)


def named(table: str, name: str) -> str:
    """A table with the name of its page above it."""
    return f"Page name: {' '.join(name.split())[:300]}\n{table}"


def first_rows(table: str, limit: int) -> str:
    """The table, cut after the last whole row within ``limit`` characters; "" if no row below its header is left."""
    part = table if len(table) <= limit else table[: limit + 1].rpartition("\n")[0].rstrip()
    _, ruled, rows = part.partition(RULE)
    return part if ruled and "\n|" in rows else ""


def shorten(tables: Iterable[str], limit: int = MAX_TABLE_LENGTH) -> str:
    """Tables with blank lines between them, cut to ``limit`` characters after the last whole row."""
    text = "\n\n".join(tables)
    if len(text) <= limit:
        return text
    whole, _, part = text[: limit + 1].rpartition("\n")
    return whole.rstrip() or part[:limit]


def _grid(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """The text of every cell, in rows of one width. Where spans overlap, the earlier cell wins."""
    below: dict[int, tuple[str, int]] = {}  # column -> (text, rows that it still spans)
    grid: list[list[str]] = []
    for number, row in enumerate(rows[:MAX_ROWS]):
        left = len(rows) - number
        placed = {column: text for column, (text, _) in below.items()}
        below = {column: (text, n - 1) for column, (text, n) in below.items() if n > 1}
        column = 0
        for cell in row:
            while column in placed:
                column += 1
            for place in range(column, min(column + max(cell.columns, 1), MAX_COLUMNS)):
                if place in placed:
                    break
                placed[place] = cell.text
                if (cell.rows or left) > 1:
                    below[place] = (cell.text, min(cell.rows or left, left) - 1)
            column += max(cell.columns, 1)
            if column >= MAX_COLUMNS:
                break
        grid.append([placed.get(place, "") for place in range(max(placed, default=-1) + 1)])
    width = max(map(len, grid), default=0)
    return [row + [""] * (width - len(row)) for row in grid]


def _without_blanks(grid: list[list[str]]) -> list[list[str]]:
    rows = [row for row in grid if any(row)]
    kept = [column for column in range(len(rows[0])) if any(row[column] for row in rows)] if rows else []
    return [[row[column] for column in kept] for row in rows]


def _once(row: list[str]) -> list[str]:
    """A row with the same text in every cell is a title that spans the table: the text stays in the first cell only."""
    return [row[0], *[""] * (len(row) - 1)] if len(set(row)) == 1 else row
