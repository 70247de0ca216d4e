"""Read-only queries of SQLite files in a guarded process, with parameters and limits of time and memory.

A graph's table may be a view of your own that never ends, and a text in it may have a gigabyte.
"""

from __future__ import annotations

import base64
import json
import math
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.common.guarded import Guarded, GuardError

SECONDS = 60.0  # of CPU; the play-by-play table has 13 million rows and no index
WALL = 6  # times the CPU seconds, by the clock
LONGEST = 256 << 20  # bytes of one value
BYTES = "base64"  # marks bytes in JSON


@dataclass(frozen=True, slots=True)
class Table:
    """Names of the columns, and the rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def query(path: Path, sql: str, parameters: Sequence[Any], *, seconds: float = SECONDS) -> Table:
    """The result of a query; infinity in it becomes None.

    Args:
        sql: A constant of the program, with ``?`` for every value.
        seconds: Limit of CPU time.

    Raises:
        CallError: The file is not such a database, or the query exceeded a limit.
    """
    guarded = _guarded(seconds)
    try:
        reply = json.loads(guarded.call(json.dumps([str(path), sql, list(parameters)]).encode()))
    except GuardError as error:
        limits = f"{seconds:g} s of CPU time, {guarded.memory >> 20} MiB"
        raise CallError(f"{path} cannot answer: the query {error.reason} (limits: {limits})") from None
    if "refused" in reply:
        raise CallError(f"{path} cannot answer: {reply['refused']}")
    return Table(tuple(reply["columns"]), [tuple(map(_decoded, row)) for row in reply["rows"]])


@cache
def _guarded(seconds: float) -> Guarded:
    """One process for all queries: its start takes half a second."""
    return Guarded(f"{__name__}:query_function", seconds=seconds, wall=WALL * seconds)


def query_function() -> Callable[[bytes], bytes]:
    """What the guarded process calls: path, query and parameters in, columns and rows out, as JSON."""

    def run(request: bytes) -> bytes:
        path, sql, parameters = json.loads(request)
        try:
            reply = _queried(Path(path), sql, parameters)
        except sqlite3.Error as error:
            reply = {"refused": str(error)}
        except UnicodeEncodeError:  # a lone surrogate, which cannot be in the database
            reply = {"columns": [], "rows": []}
        return json.dumps(reply).encode()

    return run


def _queried(path: Path, sql: str, parameters: list[Any]) -> dict[str, Any]:
    with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as base:
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        cursor = base.execute(sql, parameters)
        rows = [list(map(_encoded, row)) for row in cursor]
        return {"columns": [column[0] for column in cursor.description], "rows": rows}


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return {BYTES: base64.b64encode(value).decode()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _decoded(value: Any) -> Any:
    return base64.b64decode(value[BYTES]) if isinstance(value, dict) else value
