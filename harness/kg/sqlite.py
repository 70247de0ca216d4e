"""Read-only queries of the official SQLite files, with parameters and a time limit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lm_eval_rag.harness.common.errors import CallError

TIMEOUT = 60.0  # seconds; the play-by-play table has 13 million rows and no index
STEPS = 100_000  # SQLite's steps between two checks of the time limit


@dataclass(frozen=True, slots=True)
class Table:
    """Names of the columns, and the rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def query(path: Path, sql: str, parameters: Sequence[Any], *, timeout: float = TIMEOUT) -> Table:
    """The result of a query.

    Args:
        sql: A constant of the program, with ``?`` for every value.

    Raises:
        CallError: The file is not such a database, or the query took longer than ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)) as base:
            base.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
            cursor = base.execute(sql, tuple(parameters))
            return Table(tuple(column[0] for column in cursor.description), cursor.fetchall())
    except sqlite3.Error as error:
        late = f" after {timeout} seconds" if time.monotonic() > deadline else ""
        raise CallError(f"{path} cannot answer: {error}{late}") from None
    except UnicodeEncodeError:  # a lone surrogate, which cannot be in the database
        return Table((), [])
