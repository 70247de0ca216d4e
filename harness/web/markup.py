"""Tables out of a page's HTML, in document order.

Resiliparse (Lexbor, an HTML5 parser) repairs the page and writes it again as well-formed HTML. One pass over this,
without recursion, reads the tables; visiting the nodes of the tree takes up to ten times as long. A nested table is a
separate table and not part of the outer table's cells.

With ``layout``, a table that is only used for layout (``role=presentation``, a single cell with text, or a cell as long
as an article) stays in the text. Without, it is a table like any other, as published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

from lm_eval_rag.harness.web.clean import clean
from lm_eval_rag.harness.web.markdown_tables import MAX_ROWS, Cell, markdown

ATTRIBUTES = r'[^">]*+(?:"[^"]*+"[^">]*+)*+'
TOKEN = re.compile(rf"<(/?)([a-zA-Z][^\s/>]*+)({ATTRIBUTES})>|<!--.*?-->|([^<]++)", re.DOTALL)
NOISE = re.compile(rf"<(script|style|template|noscript|svg|iframe)\b{ATTRIBUTES}>.*?</\1>|<!--.*?-->", re.DOTALL)
TABLE = re.compile("<table", re.IGNORECASE)
SPAN = re.compile(r'\b(col|row)span="\s*(\d{1,5})')
LAYOUT = re.compile(r'\brole="(?:presentation|none)"')
INLINE = {
    *(
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "cite",
        "code",
        "em",
        "font",
        "i",
        "kbd",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
    ),
    *("strong", "sub", "sup", "tt", "u", "var", "wbr"),
}
MAX_TOKENS = 300_000  # tags and texts in all tables of a page
ARTICLE = 1500  # characters of a cell that is an article, not data


@dataclass(slots=True)
class Open:
    """A table while it is read: its position, its rows so far, and the parts of the open cell or caption."""

    begin: int
    presentation: bool
    rows: list[list[Cell]] = field(default_factory=list)
    parts: list[str] | None = None
    columns: int = 1
    spanned: int = 1
    caption: str = ""

    def start(self, tag: str, attributes: str) -> None:
        """An element of this table begins, or an element other than a cell ends."""
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th", "caption"):
            spans = {name: int(number) for name, number in SPAN.findall(attributes)}
            self.parts, self.columns, self.spanned = [], spans.get("col", 1), spans.get("row", 1)
        elif self.parts is not None and tag not in INLINE:
            self.parts.append(" ")

    def end(self, tag: str) -> None:
        """The open cell or caption ends."""
        text = " ".join(clean(unescape("".join(self.parts or ()))).split())
        self.parts = None
        if tag == "caption":
            self.caption = text
        elif self.rows and len(self.rows) <= MAX_ROWS:
            self.rows[-1].append(Cell(text, self.columns, self.spanned))

    @property
    def texts(self) -> list[str]:
        """The texts of all cells that have one."""
        return [cell.text for row in self.rows for cell in row if cell.text]

    @property
    def lays_out(self) -> bool:
        """Whether it is only used for layout."""
        texts = self.texts
        return self.presentation or len(texts) == 1 or any(len(text) > ARTICLE for text in texts)


@dataclass(slots=True)
class Reading:
    """One pass over well-formed HTML: the finished tables, and what must be cut out of the page."""

    layout: bool
    left: int = MAX_TOKENS
    tables: list[Open] = field(default_factory=list)
    cuts: list[tuple[int, int]] = field(default_factory=list)
    stack: list[Open] = field(default_factory=list)

    def read(self, html: str, begin: int) -> int:
        """Read the outermost table that begins at ``begin``; returns its end."""
        for match in TOKEN.finditer(html, begin):
            self.left -= 1
            if not self.left:
                break
            closing, tag, attributes, text = match.groups()
            if tag == "table" and closing:
                self._end(match.end())
                if not self.stack:
                    return match.end()
            elif tag == "table":
                self.stack.append(Open(match.start(), bool(LAYOUT.search(attributes))))
            elif text and self.stack[-1].parts is not None:
                self.stack[-1].parts.append(text)
            elif tag in ("td", "th", "caption") and closing:
                self.stack[-1].end(tag)
            elif tag and not (closing and tag == "tr"):
                self.stack[-1].start(tag, attributes)
        return len(html)

    def _end(self, end: int) -> None:
        """The innermost table ends; the words of a layout table inside a cell become part of the cell."""
        table = self.stack.pop()
        if not (self.layout and table.lays_out):
            while self.cuts and self.cuts[-1][0] >= table.begin:
                self.cuts.pop()
            self.cuts.append((table.begin, end))
            self.tables.append(table)
        elif self.stack and self.stack[-1].parts is not None:
            self.stack[-1].parts.append(f" {' '.join(table.texts)} ".replace("&", "&amp;"))


def take_tables(html: str, *, layout: bool) -> tuple[str, list[str], tuple[str, ...]]:
    """A page without its tables, the tables in Markdown, and a note if they were cut.

    Raises:
        ValueError: The parser refuses the page.
    """
    if not TABLE.search(html):
        return html, [], ()
    from resiliparse.parse.html import HTMLTree

    document = HTMLTree.parse(html).document
    html = NOISE.sub(" ", document.html if document else "")
    reading, begin = Reading(layout), html.find("<table")
    while begin >= 0 and reading.left > 0:
        begin = html.find("<table", reading.read(html, begin))
    ends = [0, *(end for _, end in reading.cuts)]
    begins = [*(begin for begin, _ in reading.cuts), len(html)]
    rest = " ".join(html[a:b] for a, b in zip(ends, begins, strict=True))
    ordered = sorted(reading.tables, key=lambda table: table.begin)
    texts = [markdown(table.rows, table.caption) for table in ordered]
    return rest, [text for text in texts if text], ("tables cut",) if reading.left <= 0 else ()
