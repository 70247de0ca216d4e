"""The main text and the tables of a page, by two extractors behind one interface.

``faithful``: trafilatura, and BeautifulSoup where it finds nothing, as published (section 4.1, appendix C). Tables
never stand in its text. Departures: BeautifulSoup reads with lxml, not with Python's parser, and tables are read by
:mod:`lm_eval_rag.harness.web.markup` for both extractors.

``fast``: resiliparse's main content, and the whole page's text where that is too little. Tables that only lay out a
page stay text.

These run without bounds on time and memory, and parsers of hostile pages can crash: use
:class:`lm_eval_rag.harness.web.reader.PageReader`, which runs them in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import unescape

from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.web.clean import NUMBERS, squeeze
from lm_eval_rag.harness.web.markup import take_tables

LITTLE, SHARE = 1000, 10  # main content shorter than both is little: characters, and one in so many of the page's text
PLAIN = 250_000  # characters of a page that ``plain`` reads: 0.2 s at most
PAGES = (
    "<p>A short page.</p>",
    "<table><tr><td>1</td><td>2</td></tr></table><p>A page with a table.</p>",
    f"<article>{'<p>A page with paragraphs, each of which is a sentence of some length.</p>' * 9}</article>",
)
UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "textarea", "title"})
MISFITS = (  # what parsers were seen to raise, or could, on broken input
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageText:
    """What was read of a page.

    Args:
        text: Its main text, one paragraph a line, without tables; "" when there is none.
        tables: Its tables in Markdown, in order, each with the page's name above once a reader has seen it.
        extractor: What gave the text: trafilatura, beautifulsoup, resiliparse, whole page, plain; or none.
        notes: Every fallback that was taken and every cut that was made, by name.
    """

    text: str
    tables: tuple[str, ...] = ()
    extractor: str = "none"
    notes: tuple[str, ...] = ()


Found = tuple[str, str]  # text, what gave it


def extract(html: str, extractor: str) -> PageText:
    """The text and tables of a page; what a parser refuses is left to the next, and noted.

    Args:
        html: The page, as :func:`lm_eval_rag.harness.web.clean.clean` leaves it.
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
    except MISFITS:
        notes = ("tables failed",)
    for name, attempt in attempts.items():
        try:
            text, by = attempt(rest if layout else html)
        except MISFITS:
            notes += (f"{name} failed",)
            continue
        if text:
            return PageText(text, tuple(tables), by, notes)
        notes += (f"{name} found nothing",)
    return PageText("", tuple(tables), "none", notes)


def load(extractor: str) -> None:
    """Import all that an extractor may need, by using it, so that no page pays for it.

    Raises:
        ModuleNotFoundError: A package of the extra ``web`` is missing.
    """
    for page in PAGES:
        take_tables(page, layout=True)
        for attempt in EXTRACTORS[extractor][1].values():
            attempt(page)


def plain(html: str) -> Found:
    """The text of a page's first 250,000 characters without tags, in linear time, for what nothing else can read."""
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


def _trafilatura(html: str) -> Found:
    import trafilatura

    text = trafilatura.extract(html, include_tables=False, include_comments=False)
    return squeeze(text or ""), "trafilatura"


def _beautifulsoup(html: str) -> Found:
    import bs4

    soup = bs4.BeautifulSoup(html, "lxml")
    for node in soup.find_all(["script", "style", "noscript", "template", "table", "head"]):
        node.decompose()
    return squeeze(soup.get_text("\n", strip=True)), "beautifulsoup"


def _resiliparse(html: str) -> Found:
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


Attempts = dict[str, Callable[[str], Found]]
# name -> whether tables that only lay out a page stay text, and what is tried in turn
EXTRACTORS: dict[str, tuple[bool, Attempts]] = {
    "faithful": (False, {"trafilatura": _trafilatura, "beautifulsoup": _beautifulsoup}),
    "fast": (True, {"resiliparse": _resiliparse}),
}
