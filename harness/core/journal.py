"""The journal: every finished backend call on disk, so that a killed run repeats at most what was in flight.

SQLite in WAL mode, one row a call, committed when its reply arrives. The key is a hash of the backend's fingerprint,
the request and the sample index, so that two models, two indexes or two samples of one prompt never mix. Failures are
not stored. A call is claimed before it is made: a second run on the same file waits for the reply instead of paying for
it again, and takes over the claims of a run that has died. A stored reply is final.

lm_eval's own ``--use_cache`` keys on prompt and generation arguments alone and would mix models, hence this one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, MachineError, UserError
from lm_eval_rag.harness.common.paths import full_disk
from lm_eval_rag.harness.core.owner import lives, new_owner

SCHEMA = 1
TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, reply TEXT, seconds REAL, at REAL);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT, at REAL);
"""
LOCKED = 4.0  # seconds that another program may lock the file
LOOK_AGAIN = 0.2  # seconds between two looks at another run's claim


@dataclass(frozen=True, slots=True)
class Call:
    """One backend call: which backend, what request (JSON-able), and its sample index, from 0."""

    backend: str
    request: Any
    sample: int = 0

    @property
    def key(self) -> str:
        """sha256 over backend, request and sample index; the same in every process."""
        return digest([self.backend, self.request, self.sample])


@dataclass(frozen=True, slots=True)
class Reply:
    """A backend's reply (JSON-able), the seconds it took when it was made, and whether the journal served it."""

    value: Any
    seconds: float
    journalled: bool = False


Outcome = Reply | CallError


def digest(value: Any) -> str:
    """sha256 in hex of a JSON-able value; keys sorted."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Journal:
    """Serves finished calls and stores new ones; its methods may be called from several threads.

    Args:
        path: The SQLite file; None keeps nothing (``journal=off``).
        run: Fingerprint of the run; a file that holds another run's calls is refused.

    Raises:
        UserError: The file is no journal, is another run's, is locked, or cannot be written.
    """

    def __init__(self, path: Path | None, run: str = "") -> None:
        self.path = path
        self._base: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        self._waited_for: dict[str, asyncio.Future[Outcome]] = {}  # calls of this run that are under way
        if path is None:
            return
        try:
            with self._usable():
                path.parent.mkdir(parents=True, exist_ok=True)
                self._base = sqlite3.connect(path, timeout=LOCKED, check_same_thread=False, isolation_level=None)
                self._open(path, run)
        except UserError:
            self.close()
            raise

    def _open(self, path: Path, run: str) -> None:
        assert self._base is not None
        tables = {name for (name,) in self._base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not {"meta", "calls"} <= tables:
            raise UserError(
                f"{path} is a SQLite file but no journal of ours (it holds the tables {', '.join(sorted(tables))}). "
                "Give another journal=PATH, or journal=off."
            )
        self._base.execute("PRAGMA journal_mode=WAL")
        self._base.execute("PRAGMA synchronous=NORMAL")
        with self._writing() as base:
            for statement in TABLES.split(";"):
                base.execute(statement)
            base.execute("INSERT OR IGNORE INTO meta VALUES ('run', ?), ('schema', ?)", (run, str(SCHEMA)))
        meta = dict(self._base.execute("SELECT name, value FROM meta"))
        if meta.get("schema") != str(SCHEMA):
            raise UserError(
                f"The journal {path} has schema {meta.get('schema')!r}; this version of lm-eval-rag writes {SCHEMA}. "
                "Give another journal=PATH, or journal=off."
            )
        if meta.get("run") != run:
            raise UserError(
                f"The journal {path} belongs to another run ({str(meta.get('run'))[:12]}, this one is {run[:12]}): "
                "method, parameters, generator or versions differ. Give another journal=PATH, or journal=off."
            )

    def __len__(self) -> int:
        if self._base is None:
            return 0
        count: int = self._base.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
        return count

    async def call(self, call: Call, compute: Callable[[], Awaitable[tuple[Any, float] | CallError]]) -> Outcome:
        """The stored reply of a call, or the one that ``compute`` gets for it, stored before this returns.

        Equal calls of this run are made once, and so are those of another run on the same file.

        Args:
            compute: Makes the call: a JSON-able value and the seconds it took, or why it failed.
        """
        key = call.key
        if key in self._waited_for:
            return await asyncio.shield(self._waited_for[key])
        future = self._waited_for[key] = asyncio.get_running_loop().create_future()
        try:
            outcome = await self._claimed(key, compute)
            future.set_result(outcome)
            return outcome
        except BaseException:
            future.cancel()
            raise
        finally:
            del self._waited_for[key]

    async def _claimed(self, key: str, compute: Callable[[], Awaitable[tuple[Any, float] | CallError]]) -> Outcome:
        while not isinstance(claimed := self._claim(key), Reply):
            if claimed:
                return await self._make(key, compute)
            await asyncio.sleep(LOOK_AGAIN)
        return claimed

    async def _make(self, key: str, compute: Callable[[], Awaitable[tuple[Any, float] | CallError]]) -> Outcome:
        """Make a claimed call; its claim ends with it, whatever comes of it."""
        stored = False
        try:
            outcome = await compute()
            if isinstance(outcome, CallError):
                return outcome
            reply = self._store({key: Reply(*outcome)})[key]
            stored = True
            return reply
        finally:
            if not stored:
                self._release(key)

    def serve(
        self, calls: Sequence[Call], compute: Callable[[list[int]], Sequence[Any]], batch: int
    ) -> list[Reply | CallError]:
        """The replies to cheap ``calls``, in order: stored ones from the file, the others from ``compute``.

        Args:
            compute: Given positions in ``calls``, returns a JSON-able value or a CallError for each.
            batch: How many calls are computed, then committed, at a time.
        """
        keys = [call.key for call in calls]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}  # equal calls are made once
        replies: dict[str, Outcome] = dict(self._find(first))
        missing = [i for key, i in sorted(first.items(), key=lambda item: item[1]) if key not in replies]
        for start in range(0, len(missing), batch):
            part = missing[start : start + batch]
            began = time.perf_counter()
            values = compute(part)
            seconds = (time.perf_counter() - began) / len(part)
            outcomes: dict[str, Outcome] = {
                keys[i]: value if isinstance(value, CallError) else Reply(value, seconds)
                for i, value in zip(part, values, strict=True)
            }
            replies |= outcomes
            replies |= self._store({key: reply for key, reply in outcomes.items() if isinstance(reply, Reply)})
        return [replies[key] for key in keys]

    def _find(self, keys: Iterable[str]) -> dict[str, Reply]:
        if self._base is None:
            return {}
        with self._usable(), self._lock:
            rows = {
                key: row
                for key in keys
                if (row := self._base.execute("SELECT reply, seconds FROM calls WHERE key = ?", (key,)).fetchone())
            }
        return {key: self._read(key, *row) for key, row in rows.items()}

    def _read(self, key: str, reply: Any, seconds: Any) -> Reply:
        try:
            return Reply(json.loads(reply), float(seconds), journalled=True)
        except (ValueError, TypeError):
            raise UserError(
                f"The journal {self.path} is damaged: the reply of call {key[:12]} cannot be read. Give another "
                "journal=PATH, or journal=off."
            ) from None

    def _store(self, replies: Mapping[str, Reply]) -> dict[str, Reply]:
        """Store replies; what another run has stored meanwhile stays and is returned in their place."""
        if self._base is None or not replies:
            return dict(replies)
        rows = [
            (key, json.dumps(reply.value, ensure_ascii=False), reply.seconds, time.time())
            for key, reply in replies.items()
        ]
        with self._writing() as base:
            before = base.total_changes
            base.executemany("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?)", rows)
            ignored = base.total_changes - before < len(rows)
            base.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in replies])
        return {**replies, **(self._find(replies) if ignored else {})}

    def _claim(self, key: str) -> Reply | bool:
        """The stored reply; else True if the call is ours to make now, False while a living run makes it."""
        if self._base is None:
            return True
        stored = self._find([key])
        if stored:
            return stored[key]
        with self._writing() as base:
            row = base.execute("SELECT owner, at FROM claims WHERE key = ?", (key,)).fetchone()
            if row and row[0] != self._owner and lives(*row):
                return False
            base.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (key, self._owner, time.time()))
        return self._find([key]).get(key, True)  # stored between the two looks

    def _release(self, key: str) -> None:
        if self._base is not None:
            with self._writing() as base:
                base.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, self._owner))

    @cached_property
    def _owner(self) -> str:
        return new_owner()

    def take_over(self, other: Path) -> None:
        """Keep the finished calls of another journal, too; its own stay as they are."""
        assert self._base is not None
        with self._usable(), self._lock:
            self._base.execute("ATTACH DATABASE ? AS other", (str(other),))
            try:
                with self._writing() as base:
                    base.execute("INSERT OR IGNORE INTO calls SELECT * FROM other.calls")
            finally:
                self._base.execute("DETACH DATABASE other")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, committed at the end."""
        assert self._base is not None
        with self._usable(), self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield self._base
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:  # SQLite itself rolls back where the disk is full
                    self._base.execute("ROLLBACK")
                raise

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Says what to do when the file cannot be read or written: a full disk, a damaged file, a lock."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            locked = "is locked by another program: wait until that has ended."
            what = locked if "locked" in str(error) else f"cannot be used: {error}. Free space or give rights there."
            kind = MachineError if full_disk(error) else UserError
            raise kind(f"The journal {self.path} {what} Or give another journal=PATH, or journal=off.") from None

    def close(self) -> None:
        """Close the file; the journal is not used after."""
        if self._base is not None:
            with self._lock, closing(self._base):
                self._base = None
