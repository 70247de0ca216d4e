"""Plain-text tables that are safe to print: control characters from a run's files are escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def printable(text: str) -> str:
    """The text with all non-printable characters (controls, direction marks, line breaks) escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Aligned columns, those in ``left`` to the left and the others to the right, with a line under the header."""
    lines = [[printable(text) for text in row] for row in [head, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    kept = [i for i, column in enumerate(zip(*lines, strict=True)) if any(column)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cells[i].ljust(widths[i]) if i in left else cells[i].rjust(widths[i]) for i in kept).rstrip()

    return "\n".join([line(lines[0]), "  ".join("-" * widths[i] for i in kept), *map(line, lines[1:])])
