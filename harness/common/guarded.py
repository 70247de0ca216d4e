"""Calls of a function in a process of its own, each with limits of CPU time, clock time and memory.

Python cannot interrupt a C library, and some input drives one into endless loops, gigabytes of memory or a crash: the
HTML of a hostile page, a pickle whose hash takes 2**60 steps. Here such a call ends with a :class:`GuardError`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import weakref
from typing import Literal

from lm_eval_rag.harness.common.guarded_process import CRASHED, DONE, TIMED_OUT, receive, send

MEMORY = 2 << 30  # bytes of address space of one call
GRACE = 5.0  # seconds after which a process that should have ended its call is ended itself
START_SECONDS = 120.0  # to import the function, once
PROCESS = "lm_eval_rag.harness.common.guarded_process"
Reason = Literal["timed out", "crashed", "lost"]
REASONS: dict[bytes, Reason] = {TIMED_OUT: "timed out", CRASHED: "crashed"}


class GuardError(RuntimeError):
    """A call that did not return; ``reason`` is ``timed out``, ``crashed`` (or out of memory), or ``lost``.

    ``lost`` means that the whole process ended, for example because somebody killed it.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class Guarded:
    """A function that runs in another process; safe to share between threads.

    The process starts with the first call and imports the function once. It ends with :meth:`close`, or when this
    object is collected; a call after that starts another.

    Args:
        factory: ``module:name`` of a function that takes ``arguments`` and returns the function to call, which takes
            bytes and returns bytes.
        arguments: Texts for the factory.
        seconds: CPU seconds of one call, above 0.
        wall: Seconds by the clock of one call, above 0.
        memory: Bytes of address space of one call.
    """

    def __init__(self, factory: str, *arguments: str, seconds: float, wall: float, memory: int = MEMORY) -> None:
        self.factory, self.arguments = factory, arguments
        self.seconds, self.wall, self.memory = seconds, wall, memory
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._finalizer: weakref.finalize[[subprocess.Popen[bytes]], Guarded] | None = None

    def call(self, request: bytes) -> bytes:
        """What the function returns.

        Raises:
            GuardError: The call exceeded a limit, crashed, or the process was lost.
            ImportError: The function cannot be imported.
        """
        with self._lock:
            if self.process is None:
                self.process = self._start()
                self._finalizer = weakref.finalize(self, _end, self.process)
            reply = _exchange(self.process, request, self.wall + GRACE)
            if reply is None:
                self._end()
                raise GuardError("lost")
        if reply[:1] != DONE:
            raise GuardError(REASONS[reply[:1]])
        return reply[1:]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join(path for path in sys.path if path)
        limits = (str(self.seconds), str(self.wall), str(self.memory))
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", PROCESS, self.factory, *limits, *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths, "LM_EVAL_RAG_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"},
        )
        hello = _exchange(process, None, START_SECONDS)
        missing = json.loads(hello).get("missing") if hello else "the guarded process does not start"
        if missing:
            _end(process)
            raise ImportError(missing)
        return process

    def _end(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self.process = self._finalizer = None


def _exchange(process: subprocess.Popen[bytes], request: bytes | None, seconds: float) -> bytes | None:
    """Send a request, if there is one, and receive a frame; None if the process ended or its time was up."""
    assert process.stdin and process.stdout
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        if request is not None:
            send(process.stdin, request)
        return receive(process.stdout)
    except OSError:  # it ended while it was written to
        return None
    finally:
        timer.cancel()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process without waiting for its child, which may still hold the pipes and has a time limit of its own."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # text that was not yet written when it ended
            if stream:
                stream.close()
