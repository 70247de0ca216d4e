"""The web of the demo world: HTML pages with menus, scripts, entities and tables, like real search results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from html import escape

HOST = "https://veldmark.example"
MENU = "<nav><ul><li><a href='/'>Home</a><li><a href='/news'>News</a><li><a href='/help'>Help</a></ul></nav>"
SCRIPT = "<script>window.metrics = {page: 1 < 2, cost: 'free'};</script><style>td { padding: 2px }</style>"
FOOT = "<footer><p>Terms of use. Cookies help us to count visits.</p></footer>"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: caption, head and rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page of the demo's web."""

    name: str
    url: str
    snippet: str
    html: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the demo.

    Args:
        type: One of CRAG's eight.
        dynamic: static, slow-changing, fast-changing or real-time.
        text: In words.
        answers: The answer and its alternatives.
        pages: Keys of the helpful pages.
        popularity: head, torso or tail; "" if the answer is only on the web.
    """

    type: str
    dynamic: str
    text: str
    answers: tuple[str, ...]
    pages: tuple[str, ...]
    popularity: str = ""


INVALID = ("invalid question",)


def page(path: str, name: str, paragraphs: Sequence[str], tables: Sequence[Table] = ()) -> SitePage:
    """A page with menu, text, tables, scripts and footer."""
    text = "\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    data = "\n".join(map(_table, tables))
    html = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(name)}</title>{SCRIPT}</head>\n"
        f"<body>{MENU}<main><article><h1>{escape(name)}</h1>\n{text}\n{data}\n</article></main>{FOOT}</body></html>"
    )
    return SitePage(name, f"{HOST}/{path}", paragraphs[0][:160], html)


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}" for cell in table.head)  # HTML allows cells and rows without end tags
    rows = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}' for cell in row)}" for row in table.rows)
    return f"<table class=data><caption>{escape(table.caption)}</caption><tr>{head}{rows}</table>"


def day(iso: str) -> str:
    """``February 14, 2024`` of an ISO date."""
    moment = date.fromisoformat(iso)
    return f"{moment:%B} {moment.day}, {moment.year}"


def listed(names: Sequence[str]) -> str:
    """``A, B and C``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def money(amount: float, digits: int = 2) -> tuple[str, ...]:
    """An amount in dollars: with the sign and commas, with commas, and plain."""
    return tuple(dict.fromkeys((f"${amount:,.{digits}f}", f"{amount:,.{digits}f}", f"{amount:.{digits}f}")))


def either(names: Sequence[str]) -> tuple[str, ...]:
    """The list in words, and as it would be written with commas."""
    return tuple(dict.fromkeys((listed(names), ", ".join(names))))
