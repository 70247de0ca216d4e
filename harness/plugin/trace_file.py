"""The whole trace of a run: every step of every question, one JSON object a line, compressed.

A line holds ``task``, ``id`` (the document's, which joins it to lm_eval's samples), ``repeat``, ``failure`` and
``steps``: each with ask, request, reply, seconds, tokens, how its samples ended, and whether the journal served it. The
steps of a preparation have a line each, with the task ``preparation``.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO

from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.common.paths import full_disk
from lm_eval_rag.harness.core.types import Query, Trace

# Where the command line writes the trace of a run that logs its samples and names no trace= itself.
beside_samples: ContextVar[Path | None] = ContextVar("beside_samples", default=None)


def trace_in(folder: Path) -> Path:
    """A new trace file in an output folder, where ``lm-eval-rag view`` finds it."""
    return folder / f"trace_{datetime.now():%Y-%m-%dT%H-%M-%S}.jsonl.gz"


@contextmanager
def traced_into(folder: Path) -> Iterator[None]:
    """Runs inside write their trace into a folder, unless they name a file of their own (``trace=``)."""
    token = beside_samples.set(trace_in(folder))
    try:
        yield
    finally:
        beside_samples.reset(token)


class TraceFile:
    """A ``.jsonl.gz`` file that lines are added to as questions end; each opening adds a gzip member.

    Args:
        path: The file; None writes nothing.

    Raises:
        UserError: It cannot be written; a MachineError where the disk is full.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def __enter__(self) -> TraceFile:
        if self.path is not None:
            with self._writing():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                _mend(self.path)
                self._file = gzip.open(self.path, "at", encoding="utf-8", errors="replace")
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        file, self._file = self._file, None
        if file is not None and error is None:
            with self._writing():
                file.close()
        elif file is not None:
            with suppress(OSError):  # the run ends with an error of its own
                file.close()

    def write(self, task: str, query: Query, trace: Trace) -> None:
        """Add one question's line."""
        if self._file is None:
            return
        steps = [
            {name: value for name, value in asdict(step).items() if value not in ("", (), 0)} for step in trace.steps
        ]
        line = {"task": task, "id": query.id, "repeat": query.repeat, "failure": trace.failure, "steps": steps}
        with self._writing():
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            advice = "Free space, or give another trace=FILE: the journal holds every finished call."
            kind = MachineError if full_disk(error) else UserError
            raise kind(f"trace={self.path} cannot be written: {error.strerror or error}. {advice}") from None


def read_trace(path: Path) -> list[dict[str, object]]:
    """Every line of a trace file; of a run that was killed, those that are whole."""
    return [json.loads(line) for line in _whole_lines(path)[0]]


def _whole_lines(path: Path) -> tuple[list[str], bool]:
    """The lines up to the end or to the first fault, and whether there is none: a kill leaves a gzip member open."""
    lines: list[str] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                lines.append(line)
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError):
        return [line for line in lines if line.endswith("\n")], False
    return lines, True


def _mend(path: Path) -> None:
    """Write a file with a fault anew, with its whole lines: nothing that is added after a fault can be read."""
    lines, whole = _whole_lines(path) if path.is_file() else ([], True)
    if not whole:
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.writelines(lines)
