"""Reading pages within limits: at most 2 seconds of CPU time a page, and no exception, whatever the page holds.

The parsers are C libraries, which Python cannot interrupt. Hostile pages drive them into quadratic time, gigabytes of
nodes or a crash (a million tags; deep nesting; formatting elements that HTML5 reopens in every paragraph; both
extractors have such pages of 2 MB). So they run in a guarded process (:mod:`lm_eval_rag.harness.common.guarded`). The
input is cut before, the text after. A page that the parsers cannot read is read by a scanner in linear time. The notes
of the result name what happened:

``empty page``, ``page cut``, ``bytes replaced``, ``tables cut``, ``tables failed``, ``<parser> failed``,
``<parser> found nothing``, ``timed out``, ``parser crashed``, ``parser failed``, ``reader lost``, ``plain scan``,
``text cut``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from types import TracebackType

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.extras import install_line
from lm_eval_rag.harness.common.guarded import Guarded, GuardError, Reason
from lm_eval_rag.harness.web.clean import clean, decode
from lm_eval_rag.harness.web.extract import EXTRACTORS, PARSER_ERRORS, PageText, extract, load, plain
from lm_eval_rag.harness.web.markdown_tables import named

log = logging.getLogger(__name__)
DEFAULT = "fast"  # finds at least as many answers as faithful on the real pages: scripts/bench_web.py
MAX_CHARS = 2_000_000  # the longest of 50 real pages has 1.55 million
MAX_TEXT = 200_000  # splitting the worst such text takes 0.5 s; the longest of 50 real pages has under 100,000
SECONDS = 1.5  # of CPU for the parsers; cleaning and the scanner get the rest of 2. Real pages take 0.3 s at most
WALL = 60.0  # seconds by the clock: parsers never wait, so only a busy machine comes near it
NOTES: dict[Reason, str] = {"timed out": "timed out", "crashed": "parser crashed", "lost": "reader lost"}


class PageReader:
    """Reads pages, one at a time; safe to share between threads. Close it, or use it in a ``with`` block.

    Args:
        extractor: ``fast`` or ``faithful``.
        seconds: CPU seconds that the parsers may take for a page, above 0. Their process starts with the first page,
            which takes about a second, once.
        wall: The same by the clock.
        max_chars: Longer pages are cut to so many characters; bytes are cut at four times as many.

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
        self.extractor = extractor
        self.max_chars = at_least("max_chars", max_chars)
        self.guarded = Guarded(f"{__name__}:page_function", extractor, seconds=seconds, wall=wall)

    def read(self, page: str | bytes | None, name: str = "") -> PageText:
        """The text and tables of a page.

        Args:
            page: Its HTML; bytes are decoded as browsers do; None and blank pages have no text.
            name: Goes above each of its tables.

        Raises:
            UserError: A package of the extra ``web`` is missing.
        """
        html, notes = self._cut(page or "")
        if not html.strip():
            return PageText("", notes=(*notes, "empty page"))
        read = self._parsed(html)
        if not (read.text or read.tables):
            text, extractor = plain(html)
            read = PageText(text, (), extractor if text else "none", (*read.notes, "plain scan"))
        notes += read.notes + (("text cut",) if len(read.text) > MAX_TEXT else ())
        return replace(
            read, text=read.text[:MAX_TEXT], tables=tuple(named(table, name) for table in read.tables), notes=notes
        )

    def close(self) -> None:
        """End the process; the next page starts another."""
        self.guarded.close()

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

    def _parsed(self, html: str) -> PageText:
        """What the parsers read; without text and tables if the call did not return."""
        try:
            reply = json.loads(self.guarded.call(html.encode("utf-8", "replace")))
        except GuardError as error:
            if error.reason == "lost":
                log.warning("The process that parses pages was lost at a page of %d characters.", len(html))
            return PageText("", notes=(NOTES[error.reason],))
        except ImportError as error:
            raise UserError(f"Web pages cannot be read: {error}. Install them: `{install_line('web')}`.") from None
        return PageText(reply["text"], tuple(reply["tables"]), reply["extractor"], tuple(reply["notes"]))


def page_function(extractor: str) -> Callable[[bytes], bytes]:
    """What the guarded process calls: HTML in, a :class:`PageText` as JSON out."""
    load(extractor)

    def parse(page: bytes) -> bytes:
        try:
            read = extract(page.decode(), extractor)
        except PARSER_ERRORS:
            read = PageText("", notes=("parser failed",))
        return json.dumps(asdict(read), ensure_ascii=False).encode("utf-8", "replace")

    return parse
