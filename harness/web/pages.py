"""A question's pages to its references: the best chunks of text, and the tables (section 4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.web.chunking import GROUP, MAX_SENTENCE, chunks
from lm_eval_rag.harness.web.rank import Ranker, bm25
from lm_eval_rag.harness.web.reader import PageReader
from lm_eval_rag.harness.web.sentences import sentences

CHUNKS = 10  # Table 5, "Chunk Number"


@dataclass(frozen=True, slots=True)
class Page:
    """A page that a search returned."""

    html: str | bytes | None
    name: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class References:
    """What is put into prompts.

    Args:
        chunks: The best chunks, best first; a chunk's source is its page's URL, its id ``<page>.<chunk>``, both from 0.
        tables: Every table, in the order of the pages, each with its page's name above; not cut
            (:func:`lm_eval_rag.harness.web.markdown_tables.shorten` does that).
        notes: How often each fallback was taken and each cut made, by name.
        extractors: How many pages each extractor gave the text of.
    """

    chunks: tuple[Passage, ...]
    tables: tuple[str, ...]
    notes: Mapping[str, int] = field(default_factory=dict)
    extractors: Mapping[str, int] = field(default_factory=dict)


def references(
    query: str,
    pages: Iterable[Page],
    *,
    reader: PageReader,
    rank: Ranker = bm25,
    k: int = CHUNKS,
    max_sentence: int = MAX_SENTENCE,
    group: int = GROUP,
) -> References:
    """The references of a question. A page that comes twice is read once, a chunk or table that comes twice kept once.

    Args:
        query: The question.
        pages: In the order in which the search returned them.
        reader: Reads them.
        rank: Orders the chunks; BM25, or :func:`lm_eval_rag.harness.web.rank.by_embedding` of an encoder, as published.
        k: The most chunks, 1 or more.
        max_sentence: Characters of a sentence that are kept.
        group: Sentences in a chunk without a question.

    Raises:
        UserError: A value out of range, or a package of the extra ``web`` is missing. No page raises anything.
    """
    at_least("k", k)
    found, tables, notes, extractors = list[Passage](), list[str](), Counter[str](), Counter[str]()
    seen_pages, seen = set[str | bytes | None](), set[str]()
    for number, page in enumerate(pages):
        if page.html in seen_pages:
            notes["page repeated"] += 1
            continue
        seen_pages.add(page.html)
        read = reader.read(page.html, page.name)
        notes.update(read.notes)
        extractors[read.extractor] += 1
        tables += read.tables
        texts = chunks(sentences(read.text), max_sentence=max_sentence, group=group)
        for place, text in enumerate(texts):
            if text not in seen:
                seen.add(text)
                found.append(Passage(f"{number}.{place}", text, source=page.url))
    return References(_best(query, found, rank, k), tuple(dict.fromkeys(tables)), dict(notes), dict(extractors))


def _best(query: str, found: Sequence[Passage], rank: Ranker, k: int) -> tuple[Passage, ...]:
    ranked = rank(query, [passage.text for passage in found], k)
    return tuple(
        Passage(found[place].id, found[place].text, score=score, source=found[place].source) for place, score in ranked
    )
