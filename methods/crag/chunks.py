"""Which texts of the pages a model is shown.

``best_chunks``: chunks as in section 4.1. Past the paper: the best pages first (BM25; for task 3's 50), and children
that find their parents (a sentence is searched for, the chunk around it is shown).
``best_sentences``: those of the official baseline.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.core.asks import rank, retrieve
from lm_eval_rag.harness.core.types import Passage, Plan, Query, WebPage
from lm_eval_rag.harness.web.chunking import chunks
from lm_eval_rag.harness.web.rank import bm25
from lm_eval_rag.harness.web.sentences import sentences

# As in the official RAG baseline: sentences, and characters of one and of all.
SENTENCES, SENTENCE, TEXT = 20, 1000, 4000
CHILDREN = 4  # searched for, for each parent that is wanted: several may have one parent


def best_chunks(
    query: Query, read: Sequence[WebPage], k: int, *, best_pages: int = 0, parents: bool = False
) -> Plan[tuple[Passage, ...]]:
    """The ``k`` best chunks, best first.

    Args:
        read: The question's pages.
        best_pages: Pages that BM25 keeps before; 0 keeps all.
        parents: Whether a chunk is found by one of its sentences.
    """
    if not best_pages and not parents:
        return (yield from retrieve(query.text, k))
    parts = chunks_of(preferred(query, read, best_pages))
    if not parents:
        return (yield from ranked(query, parts, k))
    children = [Passage(part.id, child, source=part.source) for part in parts for child in sentences(part.text)]
    found = yield from ranked(query, children, CHILDREN * k)
    best = dict(reversed([(child.id, child.score) for child in found]))  # of each parent its best child's
    whole = {part.id: part for part in parts}
    return tuple(_scored(whole[name], best[name]) for name in list(dict.fromkeys(c.id for c in found))[:k])


def best_sentences(
    query: Query, read: Sequence[WebPage], *, k: int = SENTENCES, longest: int = SENTENCE, length: int = TEXT
) -> Plan[tuple[Passage, ...]]:
    """The ``k`` best sentences, each cut to ``longest`` characters, as many as fit into ``length`` characters."""
    parts = [
        Passage(f"{page.number}.{place}", text[:longest], source=page.url)
        for page in read
        for place, text in enumerate(sentences(page.text))
    ]
    kept: list[Passage] = []
    for part in (yield from ranked(query, parts, k)):
        length -= len(part.text)
        if length < 0:
            break
        kept.append(part)
    return tuple(kept)


def preferred(query: Query, read: Sequence[WebPage], best: int) -> Sequence[WebPage]:
    """The ``best`` pages by BM25, best first; 0 leaves them as they are."""
    return [read[place] for place, _ in bm25(query.text, [page.text for page in read], best)] if best else read


def chunks_of(read: Sequence[WebPage]) -> list[Passage]:
    """The chunks of section 4.1 of some pages, with the ids that Retrieve gives them."""
    return [
        Passage(f"{page.number}.{place}", text, source=page.url)
        for page in read
        for place, text in enumerate(chunks(sentences(page.text)))
    ]


def ranked(query: Query, parts: Sequence[Passage], k: int) -> Plan[tuple[Passage, ...]]:
    """The ``k`` best by the run's retriever, best first; nothing is asked where there are none."""
    if not parts:
        return ()
    found = yield from rank(query.text, [part.text for part in parts], k)
    return tuple(_scored(parts[place], score) for place, score in found)


def _scored(part: Passage, score: float) -> Passage:
    return Passage(part.id, part.text, score=score, source=part.source)
