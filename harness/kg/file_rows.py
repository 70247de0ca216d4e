"""The records of a graph's file: key and JSON-able value of each, whatever its format.

NaN, infinity and integers of more than 4,300 digits have no place in JSON, and are refused in JSON files. In pickles,
where NaN marks a missing value, NaN and infinity become None.
"""

from __future__ import annotations

import bz2
import csv
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.kg.frames import read_frame
from lm_eval_rag.harness.kg.pickles import MAX_DIGITS, plain, read_inert
from lm_eval_rag.harness.kg.records import Row

MAX_LINE = 64 << 20  # characters of one line of the open graph, against zip bombs
FRAMES = ("grammy_df.pickle", "soccer_team_match_stats.pkl")
DAMAGED = (EOFError, OSError, ValueError, TypeError, KeyError, RecursionError, csv.Error)


def rows_of(path: Path) -> Iterator[Row]:
    """Key and value of every record of a file; the items of a list and the rows of a frame are numbered.

    Raises:
        UserError: It is damaged, or holds what JSON cannot hold.
    """
    return READERS[path.suffix](path)


def strict_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is not JSON, or holds NaN, infinity or an integer of more than 4,300 digits.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, parse_int=_integer, parse_float=_finite, parse_constant=_refuse)


def _integer(text: str) -> int:
    return int(text) if len(text) <= MAX_DIGITS else _refuse(f"an integer of {len(text):,} digits")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text[:20])


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"{what} is not allowed (write null for what is not known)")


def _json(path: Path) -> Iterator[Row]:
    try:
        content = strict_json(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}. Fetch the file again.") from None
    if isinstance(content, list):
        content = {str(row): value for row, value in enumerate(content)}
    if not isinstance(content, dict):
        raise UserError(f"{path} holds a {type(content).__name__}, not an object or a list. Fetch it again.")
    yield from content.items()


def _json_lines(path: Path) -> Iterator[Row]:
    """Lines ``["name", {...}]``, packed by bzip2."""
    number = 0
    try:
        with bz2.open(path, "rt", encoding="utf-8") as file:
            while line := file.readline(MAX_LINE):
                number += 1
                key, value = strict_json(line)
                yield str(key), value
    except DAMAGED as error:
        raise UserError(f"{path}, line {max(number, 1)}, is damaged: {error}. Fetch the file again.") from None


def _companies(path: Path) -> Iterator[Row]:
    """Names with ticker symbols; of a name that is there twice, the last symbol."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            yield from {row["Name"]: row["Symbol"] for row in csv.DictReader(file) if row["Name"]}.items()
    except DAMAGED as error:
        raise UserError(f"{path} is not CSV with the columns Name and Symbol ({error}). Fetch it again.") from None


def _pickle(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        if path.name in FRAMES:
            yield from ((str(row), value) for row, value in enumerate(read_frame(file, str(path))))
            return
        content = read_inert(file, str(path))
    if not isinstance(content, dict):
        raise UserError(f"{path} does not hold a dictionary. Fetch the official file.")
    yield from ((str(plain(key, str(path))), plain(value, str(path))) for key, value in content.items())


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".json": _json,
    ".bz2": _json_lines,
    ".dict": _companies,
    ".csv": _companies,
    ".pickle": _pickle,
    ".pkl": _pickle,
}
