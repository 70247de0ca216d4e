"""Which texts of the web pages the model sees.

``best_chunks``: chunks as in section 4.1. Options beyond the paper: BM25 first selects pages (for the 50 pages of task
3), and child-to-parent retrieval (retrieve sentences, show the chunks around them).
``best_sentences``: the sentences of the official baseline.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.core.asks import rank, retrieve
from lm_eval_rag.harness.core.types import Passage, Plan, Query, WebPage
from lm_eval_rag.harness.web.chunking import chunks
from lm_eval_rag.harness.web.rank import bm25
from lm_eval_rag.harness.web.sentences import sentences

NO_PAGES = "no pages come with the question: answered without them"  # a note
# As in the official baselines (facebookresearch/CRAG): number of sentences, and characters of one and of all.
SENTENCES, SENTENCE, TEXT = 20, 1000, 4000
CHILDREN = 4  # retrieved for each parent that is wanted, because several may have the same parent


def best_chunks(
    query: Query, pages: Sequence[WebPage], k: int, *, best_pages: int = 0, parents: bool = False
) -> Plan[tuple[Passage, ...]]:
    """The ``k`` best chunks, best first.

    Args:
        pages: The question's pages.
        best_pages: Number of pages that BM25 keeps first; 0 keeps all.
        parents: Retrieve sentences, and return the chunks around them.
    """
    if not best_pages and not parents:
        return (yield from retrieve(query.text, k))
    candidates = chunks_of(pages_by_bm25(query, pages, best_pages))
    if not parents:
        return (yield from ranked(query, candidates, k))
    children = [
        Passage(chunk.id, child, source=chunk.source) for chunk in candidates for child in sentences(chunk.text)
    ]
    best_children = yield from ranked(query, children, CHILDREN * k)
    scores = dict(reversed([(child.id, child.score) for child in best_children]))  # the best child's, by parent
    by_id = {chunk.id: chunk for chunk in candidates}
    return tuple(_scored(by_id[id_], scores[id_]) for id_ in list(dict.fromkeys(c.id for c in best_children))[:k])


def best_sentences(
    query: Query, pages: Sequence[WebPage], *, k: int = SENTENCES, longest: int = SENTENCE, length: int = TEXT
) -> Plan[tuple[Passage, ...]]:
    """The ``k`` best sentences, each once, cut to ``longest`` characters, as many as fit into ``length`` characters."""
    candidates: dict[str, Passage] = {}
    for page in pages:
        for place, text in enumerate(sentences(page.text)):
            part = text[:longest]
            candidates.setdefault(part, Passage(f"{page.number}.{place}", part, source=page.url))
    kept: list[Passage] = []
    for sentence in (yield from ranked(query, list(candidates.values()), k)):
        length -= len(sentence.text)
        if length < 0:
            break
        kept.append(sentence)
    return tuple(kept)


def pages_by_bm25(query: Query, pages: Sequence[WebPage], best: int) -> Sequence[WebPage]:
    """The ``best`` pages by BM25, best first; with 0, all pages in their own order."""
    return [pages[place] for place, _ in bm25(query.text, [page.text for page in pages], best)] if best else pages


def chunks_of(pages: Sequence[WebPage]) -> list[Passage]:
    """The chunks of section 4.1 of some pages, with the same ids as Retrieve gives them."""
    return [
        Passage(f"{page.number}.{place}", text, source=page.url)
        for page in pages
        for place, text in enumerate(chunks(sentences(page.text)))
    ]


def ranked(query: Query, passages: Sequence[Passage], k: int) -> Plan[tuple[Passage, ...]]:
    """The ``k`` best passages by the run's retriever, best first; without passages nothing is asked."""
    if not passages:
        return ()
    places = yield from rank(query.text, [passage.text for passage in passages], k)
    return tuple(_scored(passages[place], score) for place, score in places)


def _scored(passage: Passage, score: float) -> Passage:
    return Passage(passage.id, passage.text, score=score, source=passage.source)
