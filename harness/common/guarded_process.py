"""The process of :class:`.guarded.Guarded`: ``python -m lm_eval_rag.harness.common.guarded_process FACTORY ...``.

It imports the function once and then forks a child for each call. The system ends a child that exceeds a limit, even
inside a C library, and the next call gets a child that is as good as new. CPU time is the limit that counts, so that a
busy machine gives the same results as an idle one; the clock only ends a child that hardly gets to run. Where there is
no ``fork``, the process calls the function itself, and only the owner's clock limits it. The process ends when its
input does.

Requests come on standard input and replies go to standard output, as frames: eight bytes of length, then that many
bytes. The first frame says whether the function could be imported. A reply begins with one byte of its status.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import IO, NoReturn

LENGTH = struct.Struct("<Q")
DONE, TIMED_OUT, CRASHED = b"+", b"t", b"c"
Function = Callable[[bytes], bytes]


def send(stream: IO[bytes], *parts: bytes) -> None:
    """Write one frame."""
    stream.write(LENGTH.pack(sum(map(len, parts))))
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one frame; None if the stream ends before the frame does."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def main(factory: str, seconds: float, wall: float, memory: int, *arguments: str) -> None:
    """Serve calls until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that a library prints must not get among the frames
    module, _, name = factory.partition(":")
    try:
        function: Function = getattr(import_module(module), name)(*arguments)
    except ImportError as error:
        send(out, json.dumps({"missing": str(error)}).encode())
        return
    send(out, b"{}")
    while (request := receive(sys.stdin.buffer)) is not None:
        if hasattr(os, "fork"):
            send(out, *_in_child(function, request, seconds, wall, memory))
        else:
            send(out, DONE, function(request))


def _in_child(function: Function, request: bytes, seconds: float, wall: float, memory: int) -> tuple[bytes, bytes]:
    """The status of a call and what it returned."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        _serve(function, request, seconds, wall, memory, sink)
    os.close(sink)
    with os.fdopen(source, "rb") as stream:
        reply = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not status:
        return DONE, reply
    return (TIMED_OUT if status in (-signal.SIGPROF, -signal.SIGALRM) else CRASHED), b""


def _serve(
    function: Function, request: bytes, seconds: float, wall: float, memory: int, sink: int
) -> NoReturn:  # pragma: no cover - runs in the child
    """The child. The signals of the timers have no handler, so they end it."""
    status = 1
    try:
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)  # a child inherits ignored signals
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, wall)
        with contextlib.suppress(ImportError, ValueError, OSError):  # not every system can limit memory
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        with os.fdopen(sink, "wb") as stream:
            stream.write(function(request))
        status = 0
    finally:
        os._exit(status)  # after any exception too: nothing of the parent may run twice


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
