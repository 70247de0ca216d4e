"""Tables in the cards of data sets and models, which are Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def card_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; vertical bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
