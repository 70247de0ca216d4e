"""Tables to Markdown, as in appendix C of the paper, with these departures:

- a cell that spans columns or rows stands in each of them, except that one which is as wide as the table stands once;
- rows are padded to one width, and empty rows and columns are dropped;
- "|" within a cell is escaped, words of neighbouring elements stay apart, and a caption is kept.

As there, the first row is the head, the page's name stands above, and a table without text is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PIPE = r"\|"
MAX_ROWS, MAX_COLUMNS = 2000, 100
MAX_TABLE_LENGTH = 4000  # Table 5; its code counts characters


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as written: its text on one line, the columns it spans, and the rows (0: all that follow)."""

    text: str
    columns: int = 1
    rows: int = 1


def markdown(rows: Sequence[Sequence[Cell]], caption: str = "") -> str:
    """The table in Markdown; "" if it has no text. At most ``MAX_ROWS`` x ``MAX_COLUMNS`` are kept."""
    grid = _without_blanks(_grid(rows))
    if not any(character not in "|-" for row in grid for text in row for character in text):
        return ""
    lines = [f"| {' | '.join(text.replace('|', PIPE) for text in _once(row))} |" for row in grid]
    lines.insert(1, f"| {' | '.join('---' for _ in grid[0])} |")
    return "\n".join([caption, *lines] if caption else lines)


def named(table: str, name: str) -> str:
    """A table with the name of its page above it."""
    return f"Page name: {' '.join(name.split())[:300]}\n{table}"


def shorten(tables: Iterable[str], limit: int = MAX_TABLE_LENGTH) -> str:
    """Tables joined by blank lines, cut to ``limit`` characters after the last row that is whole."""
    text = "\n\n".join(tables)
    if len(text) <= limit:
        return text
    whole, _, part = text[: limit + 1].rpartition("\n")
    return whole.rstrip() or part[:limit]


def _grid(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """Every place of the table with its text; rows of one width. Where spans overlap, the earlier cell stays."""
    below: dict[int, tuple[str, int]] = {}  # column -> (text, rows it still spans)
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
    """A row that one text fills, which spans the table as a title does, with the text in its first place alone."""
    return [row[0], *[""] * (len(row) - 1)] if len(set(row)) == 1 else row
