"""The process that reads pages: ``python -m lm_eval_rag.harness.web.worker EXTRACTOR SECONDS WALL``.

It imports the parsers once, then forks for each page a child that may take SECONDS of CPU, WALL seconds by the clock,
and so much memory: the system ends the child in the midst of a C library, and the next page finds a process that is as
good as new. CPU is what bounds a page, so that a busy machine reads what an idle one does; the clock only ends a child
that is kept from running. Where there is no fork, it reads pages itself, and only its owner's limit holds. It ends when
its input does.

Pages come on its standard input, what was read goes out as JSON on its standard output, both in frames: four bytes of
length and then that many bytes. The first frame says whether it could start.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import sys
from dataclasses import asdict
from typing import IO, NoReturn

from lm_eval_rag.harness.web.extract import MISFITS, PageText, extract, load

LENGTH = struct.Struct("<I")
MEMORY = 2 << 30  # bytes of address space a page may take


def send(stream: IO[bytes], data: bytes) -> None:
    """Write one frame."""
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one frame; None where the stream ends before it does."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def main(extractor: str, seconds: float, wall: float) -> None:
    """Serve pages until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a parser prints must not get among the frames
    try:
        load(extractor)
    except ImportError as error:
        send(out, json.dumps({"missing": str(error)}).encode())
        return
    send(out, b"{}")
    while (page := receive(sys.stdin.buffer)) is not None:
        send(out, _in_child(page, extractor, seconds, wall) if hasattr(os, "fork") else _read(page, extractor))


def _in_child(page: bytes, extractor: str, seconds: float, wall: float) -> bytes:
    """What a child reads within the limits, or why it could not."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        _serve(page, extractor, seconds, wall, sink)
    os.close(sink)
    with os.fdopen(source, "rb") as stream:
        answer = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not status:
        return answer
    timed_out = status in (-signal.SIGPROF, -signal.SIGALRM)
    return _encoded(PageText("", notes=("timed out" if timed_out else "parser crashed",)))


def _serve(page: bytes, extractor: str, seconds: float, wall: float, sink: int) -> NoReturn:
    """The child: signals that nobody handles end it when its time is up."""
    status = 1
    try:
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)  # an ignored signal would have been inherited
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, wall)
        with contextlib.suppress(ImportError, ValueError, OSError):  # not every system can bound memory
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with os.fdopen(sink, "wb") as stream:
            stream.write(_read(page, extractor))
        status = 0
    finally:
        os._exit(status)  # whatever was raised: nothing of the parent's may be run twice


def _read(page: bytes, extractor: str) -> bytes:
    try:
        return _encoded(extract(page.decode(), extractor))
    except MISFITS:
        return _encoded(PageText("", notes=("parser failed",)))


def _encoded(read: PageText) -> bytes:
    return json.dumps(asdict(read), ensure_ascii=False).encode("utf-8", "replace")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
