"""Data of a page in chunks: JSON Lines, compressed with gzip and written in base64.

Base64 has no ``<``, so no text of a run can end the element that holds its chunk. The browser's ``DecompressionStream``
opens a chunk when it is needed.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

CHARACTERS = 400_000  # of a chunk before compression, about: opened in some milliseconds, and compressed well


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines, packed.

    Args:
        lines: Number of lines.
        text: The lines, gzip and base64.
    """

    lines: int
    text: str


def line_of(value: object) -> str:
    """A JSON value as one line. Non-ASCII text stays readable, so that a search can look at the line itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pack(text: str) -> str:
    """Text as gzip and base64; the same text gives the same result. Lone surrogates become ``?``."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")


def unpack(packed: str) -> list[Any]:
    """The JSON values of a packed text, one per line."""
    return [json.loads(line) for line in gzip.decompress(base64.b64decode(packed)).decode("utf-8").split("\n")]


def chunks(values: Iterable[object], characters: int = CHARACTERS) -> Iterator[Chunk]:
    """Values in chunks of about ``characters``, in order; a value is never divided."""
    lines: list[str] = []
    size = 0
    for value in values:
        lines.append(line_of(value))
        size += len(lines[-1])
        if size >= characters:
            yield Chunk(len(lines), pack("\n".join(lines)))
            lines, size = [], 0
    if lines:
        yield Chunk(len(lines), pack("\n".join(lines)))
