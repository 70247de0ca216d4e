"""What a folder's files hold, for fingerprints."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

HASHED_WHOLE = 64 << 20  # bytes; larger files are told by size and time


def contents(folder: Path) -> list[list[object]]:
    """Name and sha256 of each file but cards (.md), by name; large files by size and time of change."""
    marks: list[list[object]] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"):
        stat = path.stat()
        whole = stat.st_size <= HASHED_WHOLE
        mark = sha256(path.read_bytes()).hexdigest() if whole else [stat.st_size, stat.st_mtime_ns]
        marks.append([str(path.relative_to(folder)), mark])
    return marks
