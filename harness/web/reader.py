"""Reading pages within bounds: 2 seconds of CPU a page, and never an exception, whatever the page.

The parsers are C libraries, which nothing in Python can interrupt, and which hostile pages drive into quadratic time,
gigabytes of nodes or a crash (a million tags; deep nesting; formatting elements that HTML5 reopens in every paragraph;
both extractors have such pages of 2 MB). So they run in a process of their own, where each page has its time and memory
(:mod:`lm_eval_rag.harness.web.worker`). Input is cut before, the text after. A page that cannot be read so is read by a
scanner that is linear in time. All of this is named in the notes of the result:

``empty page``, ``page cut``, ``bytes replaced``, ``tables cut``, ``tables failed``, ``<parser> failed``,
``<parser> found nothing``, ``timed out``, ``parser crashed``, ``parser failed``, ``reader lost``, ``plain scan``,
``text cut``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from dataclasses import replace
from types import TracebackType

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.extras import install_line
from lm_eval_rag.harness.web.clean import clean, decode
from lm_eval_rag.harness.web.extract import EXTRACTORS, PageText, plain
from lm_eval_rag.harness.web.markdown_tables import named
from lm_eval_rag.harness.web.worker import receive, send

log = logging.getLogger(__name__)
DEFAULT = "fast"  # answer recall no lower than faithful's on the real pages: scripts/bench_web.py
MAX_CHARS = 2_000_000  # the longest of 50 real pages has 1.55 million
MAX_TEXT = 200_000  # sentences of the worst such text take 0.5 s; the longest of 50 real pages has under 100,000
SECONDS = 1.5  # of CPU for the parsers; cleaning and the scanner have the rest of 2. Real pages take 0.3 s at most
WALL = 60.0  # seconds by the clock for the same: parsers never wait, so only a machine that others use comes near it
GRACE = 5.0  # after which a process that should have ended its page is ended itself
START_SECONDS = 120.0  # to import the parsers, once
WORKER = "lm_eval_rag.harness.web.worker"


class PageReader:
    """Reads pages, one at a time; safe to share between threads. Close it, or use it in a ``with`` block.

    Args:
        extractor: ``fast`` or ``faithful``.
        seconds: CPU that the parsers may take for a page, above 0. Their process starts with the first page, which
            takes a second, once.
        wall: Seconds by the clock after which a page is given up, above 0.
        max_chars: Where a longer page is cut, in characters; bytes are cut at four times as many.

    Raises:
        UserError: Unknown extractor or a value out of range.
    """

    def __init__(
        self, extractor: str = DEFAULT, *, seconds: float = SECONDS, wall: float = WALL, max_chars: int = MAX_CHARS
    ) -> None:
        if extractor not in EXTRACTORS:
            raise unknown("extractor", extractor, EXTRACTORS)
        for name, value in (("seconds", seconds), ("wall", wall)):
            if not value > 0:
                raise UserError(f"{name}={value!r} is not allowed: give a number above 0.")
        self.extractor, self.seconds, self.wall = extractor, seconds, wall
        self.max_chars = at_least("max_chars", max_chars)
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None

    def read(self, page: str | bytes | None, name: str = "") -> PageText:
        """The text and tables of a page.

        Args:
            page: Its HTML; bytes are decoded as browsers do; None and blank pages have no text.
            name: What stands above each of its tables.

        Raises:
            UserError: A package of the extra ``web`` is missing.
        """
        html, notes = self._cut(page or "")
        if not html.strip():
            return PageText("", notes=(*notes, "empty page"))
        with self._lock:
            read = self._ask(html)
        if not (read.text or read.tables):
            text, by = plain(html)
            read = PageText(text, (), by if text else "none", (*read.notes, "plain scan"))
        notes += read.notes + (("text cut",) if len(read.text) > MAX_TEXT else ())
        return replace(
            read, text=read.text[:MAX_TEXT], tables=tuple(named(table, name) for table in read.tables), notes=notes
        )

    def close(self) -> None:
        """End the process; the next page starts another."""
        with self._lock:
            self._end()

    def __enter__(self) -> PageReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _cut(self, page: str | bytes) -> tuple[str, tuple[str, ...]]:
        long = len(page) > self.max_chars * (4 if isinstance(page, bytes) else 1)
        notes: tuple[str, ...] = ()
        if isinstance(page, bytes):
            page, notes = decode(page[: 4 * self.max_chars])
        long = long or len(page) > self.max_chars
        return clean(page[: self.max_chars]), (*notes, "page cut") if long else notes

    def _ask(self, html: str) -> PageText:
        """What the process reads; without text or tables if it was lost."""
        worker = self._worker = self._worker or self._started()
        answer = _exchange(worker, html.encode("utf-8", "replace"), self.wall + GRACE)
        if answer is None:
            self._end()
            log.warning("The process that reads pages was lost at a page of %d characters.", len(html))
            return PageText("", notes=("reader lost",))
        fields = json.loads(answer)
        return PageText(fields["text"], tuple(fields["tables"]), fields["extractor"], tuple(fields["notes"]))

    def _started(self) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join(path for path in sys.path if path)
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", WORKER, self.extractor, str(self.seconds), str(self.wall)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths, "LM_EVAL_RAG_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"},
        )
        hello = _exchange(worker, None, START_SECONDS)
        missing = json.loads(hello).get("missing") if hello else "the process that reads them does not start"
        if missing:
            _kill(worker)
            raise UserError(f"Web pages cannot be read: {missing}. Install with `{install_line('web')}`.")
        return worker

    def _end(self) -> None:
        if self._worker:
            _kill(self._worker)
        self._worker = None


def _exchange(worker: subprocess.Popen[bytes], page: bytes | None, seconds: float) -> bytes | None:
    """Send a page if there is one, receive a frame; None if the process ended, by itself or because its time was up."""
    assert worker.stdin and worker.stdout
    timer = threading.Timer(seconds, worker.kill)
    timer.daemon = True
    timer.start()
    try:
        if page is not None:
            send(worker.stdin, page)
        return receive(worker.stdout)
    except OSError:  # it ended while it was written to
        return None
    finally:
        timer.cancel()


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """End it without waiting for a child of its that may still hold the pipes; that one's own time runs out."""
    worker.kill()
    worker.wait()
    for stream in (worker.stdin, worker.stdout):
        with contextlib.suppress(OSError):  # what was not yet written when it ended
            if stream:
                stream.close()
