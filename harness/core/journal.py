"""The journal: every finished backend call on disk, so that a killed run repeats none of them.

SQLite in WAL mode, one row a call, committed per batch. The key is a hash of the backend's fingerprint, the request and
the number of the draw, so that two models, two indexes or two samples of one prompt never mix. Failures are not stored.
lm_eval's own ``--use_cache`` keys on prompt and generation arguments alone and would mix models, hence this one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Call:
    """One backend call: which backend, what request (JSON-able), the how-manieth draw of it."""

    backend: str
    request: Any
    draw: int = 0

    @property
    def key(self) -> str:
        """sha256 over backend, request and draw; the same in every process."""
        return digest([self.backend, self.request, self.draw])


@dataclass(frozen=True, slots=True)
class Reply:
    """A backend's reply (JSON-able), the seconds it took when it was made, and whether the journal served it."""

    value: Any
    seconds: float
    journalled: bool = False


def digest(value: Any) -> str:
    """sha256 in hex of a JSON-able value; keys sorted."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Journal:
    """Serves finished calls and stores new ones.

    Args:
        path: The SQLite file; None keeps nothing (``journal=off``).
        run: Fingerprint of the run; a file that holds another run's calls is refused.

    Raises:
        UserError: The file is no journal, is another run's, or cannot be written.
    """

    def __init__(self, path: Path | None, run: str = "") -> None:
        self.path = path
        self._base: sqlite3.Connection | None = None
        if path is None:
            return
        try:
            with self._usable():
                path.parent.mkdir(parents=True, exist_ok=True)
                self._base = sqlite3.connect(path, timeout=60)
                self._open(path, run)
        except UserError:
            self.close()
            raise

    def _open(self, path: Path, run: str) -> None:
        assert self._base is not None
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=NORMAL")
        with self._base:
            self._base.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT)")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, reply TEXT, seconds REAL, at REAL)"
            )
            self._base.execute("INSERT OR IGNORE INTO meta VALUES ('run', ?), ('schema', ?)", (run, str(SCHEMA)))
        found = dict(self._base.execute("SELECT name, value FROM meta"))
        if found.get("run") != run or found.get("schema") != str(SCHEMA):
            raise UserError(
                f"The journal {path} belongs to another run ({str(found.get('run'))[:12]}, this one is {run[:12]}): "
                "method, parameters, generator or versions differ. Give another journal=PATH, or journal=off."
            )

    def __len__(self) -> int:
        if self._base is None:
            return 0
        count: int = self._base.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
        return count

    def serve(
        self, calls: Sequence[Call], compute: Callable[[list[int]], Sequence[Any]], batch: int
    ) -> list[Reply | CallError]:
        """The replies to ``calls``, in order: stored ones from the file, the others from ``compute``.

        Args:
            compute: Given positions in ``calls``, returns a JSON-able value or a CallError for each.
            batch: How many calls are computed, then committed, at a time.
        """
        keys = [call.key for call in calls]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}  # equal calls are made once
        replies = self._find(first)
        missing = [i for key, i in sorted(first.items(), key=lambda item: item[1]) if key not in replies]
        for start in range(0, len(missing), batch):
            part = missing[start : start + batch]
            began = time.perf_counter()
            values = compute(part)
            seconds = (time.perf_counter() - began) / len(part)
            done: dict[str, Reply | CallError] = {
                keys[i]: value if isinstance(value, CallError) else Reply(value, seconds)
                for i, value in zip(part, values, strict=True)
            }
            self._store(done)
            replies |= done
        return [replies[key] for key in keys]

    def holds_any(self, calls: Iterable[Call]) -> bool:
        """Whether one of the calls is stored."""
        return bool(self._find(call.key for call in calls))

    def _find(self, keys: Iterable[str]) -> dict[str, Reply | CallError]:
        found: dict[str, Reply | CallError] = {}
        if self._base is None:
            return found
        with self._usable():
            for key in keys:
                row = self._base.execute("SELECT reply, seconds FROM calls WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = Reply(json.loads(row[0]), row[1], journalled=True)
        return found

    def _store(self, done: Mapping[str, Reply | CallError]) -> None:
        if self._base is None:
            return
        rows = [
            (key, json.dumps(reply.value, ensure_ascii=False), reply.seconds, time.time())
            for key, reply in done.items()
            if isinstance(reply, Reply)
        ]
        with self._usable(), self._base:
            self._base.executemany("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?)", rows)

    def take_over(self, other: Path) -> None:
        """Keep the finished calls of another journal, too; its own stay as they are."""
        assert self._base is not None
        with self._usable():
            self._base.execute("ATTACH DATABASE ? AS other", (str(other),))
            with self._base:
                self._base.execute("INSERT OR IGNORE INTO calls SELECT * FROM other.calls")
            self._base.execute("DETACH DATABASE other")

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Says what to do when the file cannot be read or written: a full disk, a damaged file."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"The journal {self.path} cannot be used: {error}. Remove it, or give journal=PATH or journal=off."
            ) from None

    def close(self) -> None:
        """Close the file; the journal is not used after."""
        if self._base is not None:
            with closing(self._base):
                self._base = None
