"""Table extractor (section 4.1): the pages' tables in Markdown, cut to a length as published, or the ones that fit.

As published all tables go in until ``length`` characters are full, whatever they are about; ``best`` ranks them by the
run's retriever first.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.core.asks import rank
from lm_eval_rag.harness.core.types import Plan, Query, WebPage
from lm_eval_rag.methods.crag.references import within


def tables(query: Query, read: Sequence[WebPage], *, length: int, best: int) -> Plan[tuple[str, ...]]:
    """The tables to show, at most ``length`` characters in all.

    Args:
        best: How many, the fittest first; 0 takes them in the order of the pages.
    """
    found = tuple(dict.fromkeys(table for page in read for table in page.tables))
    if best and found:
        ranked = yield from rank(query.text, found, best)
        found = tuple(found[place] for place, _ in ranked)
    return within(found, length)
