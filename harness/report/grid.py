"""A titled table of texts, which every written form of a report lays out in its own way."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts.

    Args:
        title: Heading.
        head: Names of the columns; the first names the rows, and may be "".
        rows: Cells, as many as names.
        left: Columns of text, aligned to the left; the first is always among them.
        notes: Sentences below it.
        grouped: Whether rows that follow each other with the same first cell belong together.
        fixed: Number of columns that are repeated where it is split because it is too wide; 0 if it is never split.
        turn: Whether rows and columns may change places where it is wide.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: Collection[int] = (0,)
    notes: tuple[str, ...] = ()
    grouped: bool = False
    fixed: int = 0
    turn: bool = False

    def turned(self) -> Grid:
        """Rows as columns."""
        first, *others = zip(self.head, *self.rows, strict=True)
        return Grid(self.title, ("score", *first[1:]), tuple(others), (0,), self.notes, fixed=1)

    def narrow(self, columns: int = 7) -> Grid:
        """Turned if it has more than ``columns`` columns and fewer rows; else as it is."""
        return self.turned() if self.turn and len(self.head) > max(columns, len(self.rows) + 1) else self
