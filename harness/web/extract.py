"""The main text and the tables of a page, by two extractors behind one interface.

``faithful``: trafilatura, or BeautifulSoup if that finds nothing, as published (section 4.1, appendix C). Its text has
no tables. Departures: BeautifulSoup uses lxml, not Python's parser, and :mod:`lm_eval_rag.harness.web.markup` reads the
tables for both extractors.

``fast``: resiliparse's main content, or the text of the whole page if that is too short. Tables that are only used for
layout stay in the text.

Nothing here limits time and memory, and hostile pages can crash the parsers: use
:class:`lm_eval_rag.harness.web.reader.PageReader`, which runs them in a guarded process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import unescape

from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.web.clean import NUMBERS, squeeze
from lm_eval_rag.harness.web.markup import take_tables

LITTLE, SHARE = 1000, 10  # main content is too short if below so many characters and 1/10 of the page's text
PLAIN = 250_000  # characters that ``plain`` reads, in at most 0.2 s
PAGES = (
    "<p>A short page.</p>",
    "<table><tr><td>1</td><td>2</td></tr></table><p>A page with a table.</p>",
    f"<article>{'<p>A page with paragraphs, each of which is a sentence of some length.</p>' * 9}</article>",
)
UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "textarea", "title"})
PARSER_ERRORS = (  # that parsers raise, or could raise, for broken input
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageText:
    """Text and tables of a page.

    Args:
        text: Its main text, one paragraph per line, without tables; "" if there is none.
        tables: Its tables in Markdown, in order; a reader puts the page's name above each.
        extractor: Source of the text: trafilatura, beautifulsoup, resiliparse, whole page, plain; or none.
        notes: Names of all fallbacks and cuts.
    """

    text: str
    tables: tuple[str, ...] = ()
    extractor: str = "none"
    notes: tuple[str, ...] = ()


Extracted = tuple[str, str]  # text and its source


def extract(html: str, extractor: str) -> PageText:
    """The text and tables of a page; if a parser fails, the next one is tried, with a note.

    Args:
        html: The page, cleaned by :func:`lm_eval_rag.harness.web.clean.clean`.
        extractor: A name in ``EXTRACTORS``.

    Raises:
        UserError: Unknown extractor.
        ModuleNotFoundError: A package of the extra ``web`` is missing.
    """
    if extractor not in EXTRACTORS:
        raise unknown("extractor", extractor, EXTRACTORS)
    layout, attempts = EXTRACTORS[extractor]
    notes: tuple[str, ...] = ()
    tables: list[str] = []
    rest = html
    try:
        rest, tables, notes = take_tables(html, layout=layout)
    except PARSER_ERRORS:
        notes = ("tables failed",)
    for name, attempt in attempts.items():
        try:
            text, source = attempt(rest if layout else html)
        except PARSER_ERRORS:
            notes += (f"{name} failed",)
            continue
        if text:
            return PageText(text, tuple(tables), source, notes)
        notes += (f"{name} found nothing",)
    return PageText("", tuple(tables), "none", notes)


def load(extractor: str) -> None:
    """Import everything that an extractor may need, by using it, so that the first page does not take longer.

    Raises:
        ModuleNotFoundError: A package of the extra ``web`` is missing.
    """
    for page in PAGES:
        take_tables(page, layout=True)
        for attempt in EXTRACTORS[extractor][1].values():
            attempt(page)


def plain(html: str) -> Extracted:
    """The text of a page's first 250,000 characters without tags, in linear time, for pages that no parser can read."""
    parts, within = list[str](), ""
    for piece in html[:PLAIN].split("<"):
        tag, _, text = piece.partition(">")
        name = tag[:10].partition(" ")[0].lower()
        if within:
            within = "" if name == f"/{within}" else within
        elif name in UNSEEN:
            within = name
        if not within:
            parts.append(text if name[:1].isalpha() or name[:1] in ("/", "!", "?") else f"<{piece}" if parts else piece)
    return squeeze(unescape(NUMBERS.sub(" ", " ".join(parts)))), "plain"


def _trafilatura(html: str) -> Extracted:
    import trafilatura

    text = trafilatura.extract(html, include_tables=False, include_comments=False)
    return squeeze(text or ""), "trafilatura"


def _beautifulsoup(html: str) -> Extracted:
    import bs4

    soup = bs4.BeautifulSoup(html, "lxml")
    for node in soup.find_all(["script", "style", "noscript", "template", "table", "head"]):
        node.decompose()
    return squeeze(soup.get_text("\n", strip=True)), "beautifulsoup"


def _resiliparse(html: str) -> Extracted:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    read = partial(extract_plain_text, tree, preserve_formatting=True, list_bullets=False, alt_texts=False)
    main = squeeze(read(main_content=True))
    if len(main) < LITTLE:
        whole = squeeze(read(main_content=False))
        if SHARE * len(main) < len(whole):
            return whole, "whole page"
    return main, "resiliparse"


Attempts = dict[str, Callable[[str], Extracted]]
# name -> whether tables used for layout stay in the text, and the parsers in order
EXTRACTORS: dict[str, tuple[bool, Attempts]] = {
    "faithful": (False, {"trafilatura": _trafilatura, "beautifulsoup": _beautifulsoup}),
    "fast": (True, {"resiliparse": _resiliparse}),
}
