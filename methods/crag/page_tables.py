"""Table extractor (section 4.1): the pages' tables in Markdown, cut to a length.

As published, tables go in page by page until ``length`` characters are full, whatever they are about. ``best`` first
ranks them by the run's retriever.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.core.asks import rank
from lm_eval_rag.harness.core.types import Plan, Query, WebPage
from lm_eval_rag.methods.crag.references import within


def select_tables(query: Query, pages: Sequence[WebPage], *, length: int, best: int) -> Plan[tuple[str, ...]]:
    """The tables to show, at most ``length`` characters in all.

    Args:
        best: Number of tables, best first; 0 takes all in the order of the pages.
    """
    tables = tuple(dict.fromkeys(table for page in pages for table in page.tables))
    if best and tables:
        places = yield from rank(query.text, tables, best)
        tables = tuple(tables[place] for place, _ in places)
    return within(tables, length)
