"""Table extractor (section 4.1): the pages' tables in Markdown, cut to a length.

The paper takes the tables page by page until ``length`` characters are full, whatever they are about
(``table_order=pages``). Here they are ranked by the question first, each together with the best chunk of its page (its
snippet, if no chunk was retrieved): tables of pages about the question come first, and of these the tables that are
about it too. In both orders a table is shown only with at least one row below its header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from lm_eval_rag.harness.core.asks import rank
from lm_eval_rag.harness.core.types import Passage, Plan, Query, WebPage
from lm_eval_rag.harness.web.markdown_tables import first_rows

TableOrder = Literal["question", "pages"]


def select_tables(
    query: Query,
    pages: Sequence[WebPage],
    *,
    length: int,
    chunks: Sequence[Passage] = (),
    order: TableOrder = "question",
    best: int = 0,
) -> Plan[tuple[str, ...]]:
    """The tables to show, at most ``length`` characters in all, each once.

    Args:
        chunks: Retrieved chunks of the pages, best first.
        order: ``question`` ranks the tables by the run's retriever, ``pages`` leaves them in the order of the pages.
        best: Most tables, ranked by the question in either case; 0 takes as many as fit.
    """
    by_page = {page.number: page for page in pages}
    page_of: dict[str, int] = {}
    for page in pages:
        for table in page.tables:
            page_of.setdefault(table, page.number)
    texts = list(page_of)
    if texts and length and (best or order == "question"):
        about = _best_chunks(chunks)
        ranked = [f"{about.get(page_of[text], by_page[page_of[text]].snippet)}\n{text[:length]}" for text in texts]
        places = yield from rank(query.text, ranked, best or len(ranked))
        texts = [texts[place] for place, _ in places]
    return _fitting(texts, length)


def _best_chunks(chunks: Iterable[Passage]) -> dict[int, str]:
    """The best chunk of each page, by the page's number, with which the id of a chunk begins."""
    found: dict[int, str] = {}
    for chunk in chunks:
        found.setdefault(int(chunk.id.partition(".")[0]), chunk.text)
    return found


def _fitting(tables: Iterable[str], length: int) -> tuple[str, ...]:
    """The tables in this order; a long one is cut after a row, and left out if no row below its header is left."""
    kept: list[str] = []
    for table in tables:
        part = first_rows(table, length)
        if part:
            kept.append(part)
            length -= len(part)
    return tuple(kept)
