"""The lines of the official files as a stream: compressed with bzip2 or not, in tar archives or not, whole or in parts.

The format is recognised by content, not by name. Parts (``.part0``, ``.part1``, ...) of one archive are read like one
file. Nothing is written to disk, and only one line is in memory.
"""

from __future__ import annotations

import bz2
import io
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any, BinaryIO, cast

from lm_eval_rag.harness.common.errors import UserError

MAX_LINE = 512 << 20  # bytes of a line, against zip bombs; fifty pages of 1.5 million characters are 75 MB
PIECE = 1 << 20  # bytes of one read
PART = re.compile(r"(.+)\.part(\d+)$")
LINES = (".jsonl", ".json", ".jsonl.txt", ".jsonl.bz2")  # members of an archive with these names are read
BROKEN = (OSError, EOFError, tarfile.TarError)

Where = str  # file and line


class Joined(io.RawIOBase):
    """Several files as one stream.

    Args:
        paths: At least one, in order.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._left = list(paths)
        self._file: BinaryIO | None = None

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from the current file; 0 after the last."""
        while True:
            if self._file is None:
                if not self._left:
                    return 0
                self._file = self._left.pop(0).open("rb")
            if count := self._file.readinto(buffer):  # type: ignore[attr-defined]
                return int(count)
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Close the current file."""
        if self._file is not None:
            self._file.close()
        super().close()


def find_files(patterns: str | Sequence[str]) -> list[list[Path]]:
    """The files that match some patterns, with the parts of one archive together and in order.

    Args:
        patterns: Paths or patterns (``crag_task_3_dev_v4.tar.bz2.part*``).

    Raises:
        UserError: A path or pattern matches no file, or a part is missing.
    """
    paths: dict[Path, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else list(patterns):
        matches = sorted(glob(str(Path(pattern).expanduser())))
        files = [Path(path) for path in matches if Path(path).is_file()]
        if not files:
            raise UserError(f"data_files: {pattern!r} matches no file. Give paths or patterns of CRAG's files.")
        paths |= dict.fromkeys(files)
    if not paths:
        raise UserError("data_files is empty: give paths or patterns of CRAG's files.")
    return _grouped(list(paths))


def _grouped(paths: Sequence[Path]) -> list[list[Path]]:
    groups: dict[str, dict[int, Path]] = defaultdict(dict)
    for path in paths:
        match = PART.fullmatch(str(path))
        groups[match[1] if match else str(path)][int(match[2]) if match else 0] = path
    for name, parts in groups.items():
        first = min(parts)
        missing = [number for number in range(first, max(parts)) if number not in parts]
        if missing or first > 1:
            number = missing[0] if missing else first - 1
            raise UserError(f"data_files: {name}.part{number} is missing. Give all parts of the archive.")
    return [[parts[number] for number in sorted(parts)] for parts in groups.values()]


def read_lines(paths: Sequence[Path]) -> Iterator[tuple[Where, bytes]]:
    """Every line of a file (or of its parts) that is not blank, with file and line number.

    Raises:
        UserError: The file is damaged or incomplete, an archive holds no JSON lines, or a line is too long.
    """
    name = paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more parts"
    where = f"{name}, before its first line"
    stream = io.BufferedReader(Joined(paths), PIECE)
    try:
        with stream:
            for where, line in _lines(stream, name):
                yield where, line
    except BROKEN as error:
        raise UserError(
            f"{where}: after this the file is damaged or incomplete ({type(error).__name__}: {error}). Fetch it again; "
            f"its size and sha256 are in the task's sources.toml."
        ) from None


def _lines(stream: io.BufferedReader[Any], name: str) -> Iterator[tuple[Where, bytes]]:
    """The lines of a stream, after all decompression."""
    if stream.peek(3)[:3] == b"BZh":
        with io.BufferedReader(cast(io.RawIOBase, bz2.BZ2File(stream)), PIECE) as unpacked:
            yield from _lines(unpacked, name)
    elif stream.peek(512)[257:262] == b"ustar":
        yield from _members(stream, name)
    else:
        number = 0
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise UserError(
                    f"{name}, line {number}: longer than {MAX_LINE >> 20} MiB, longer than any record of CRAG."
                )
            if line.strip():
                yield f"{name}, line {number}", line


def _members(stream: io.BufferedReader[Any], name: str) -> Iterator[tuple[Where, bytes]]:
    """The lines of an archive's members; nothing is written to disk."""
    read = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            base = member.name.rpartition("/")[2]
            if not member.isfile() or base.startswith(".") or not base.endswith(LINES):
                continue
            content = archive.extractfile(member)
            assert content is not None  # it is a file
            read += 1
            with io.BufferedReader(cast(io.RawIOBase, content), PIECE) as inner:
                yield from _lines(inner, f"{name}, {base}")
    while stream.read(PIECE):  # read to the end, to notice a cut file
        pass
    if not read:
        raise UserError(f"{name}: the archive holds no file of JSON lines ({', '.join(LINES)}).")
