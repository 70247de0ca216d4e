"""The asks about a question's own pages: the pages as read, and the best of texts that a method made of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import CallError, at_least
from lm_eval_rag.harness.core.asks import Pages, Rank
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.journal import Call, Journal
from lm_eval_rag.harness.core.types import Passage, Query, Step
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import for_other_texts, make_retriever


@dataclass(frozen=True, slots=True)
class PagesBackend:
    """Serves Pages; what was read is kept beside the pages, not in the run's journal."""

    corpora: Corpora
    batch: int = 16

    def serve(self, asked: Sequence[tuple[Query, Pages]]) -> list[Served | CallError]:
        """The pages of each query; () for one without."""
        return [self._pages(query) for query, _ in asked]

    def _pages(self, query: Query) -> Served:
        began = perf_counter()
        pages = self.corpora.pages(query)
        notes = Counter(note for page in pages for note in page.notes)
        told = [f"{len(pages)} pages, {sum(len(page.tables) for page in pages)} tables"]
        told += [f"{note}: {count}" for note, count in sorted(notes.items())]
        step = Step("Pages", query.corpus or "", "; ".join(told), seconds=perf_counter() - began)
        return Served(pages, step)


@dataclass(frozen=True, slots=True)
class RankBackend:
    """Serves Rank by the run's retriever, through the journal; asks about the same texts are searched together."""

    corpora: Corpora
    journal: Journal
    batch: int = 64

    def serve(self, asked: Sequence[tuple[Query, Rank]]) -> list[Served | CallError]:
        """The best texts of each ask."""
        groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for i, (_, ask) in enumerate(asked):
            at_least("k", ask.k)
            groups[ask.texts].append(i)
        served: dict[int, Served | CallError] = {}
        for texts, positions in groups.items():
            replies = self._rank(texts, [asked[i][1] for i in positions])
            served |= zip(positions, replies, strict=True)
        return [served[i] for i in range(len(asked))]

    def _rank(self, texts: tuple[str, ...], asks: Sequence[Rank]) -> list[Served | CallError]:
        places = [place for place, text in enumerate(texts) if text.strip()]
        if not places:
            return [Served((), Step("Rank", ask.text, "", k=ask.k)) for ask in asks]
        corpus = Corpus.of(Passage(str(place), texts[place]) for place in places)
        name, options = for_other_texts(self.corpora.retriever, self.corpora.options)
        retriever = make_retriever(name, corpus, **options)
        calls = [Call(retriever.fingerprint, ["retrieve", ask.text, ask.k]) for ask in asks]

        def compute(positions: list[int]) -> list[Any]:
            return [retriever.search([asks[i].text], asks[i].k)[0] for i in positions]

        served: list[Served | CallError] = []
        for ask, reply in zip(asks, self.journal.serve(calls, compute, self.batch), strict=True):
            if isinstance(reply, CallError):
                served.append(reply)
                continue
            best = tuple((places[int(row)], float(score)) for row, score in reply.value)
            told = " ".join(str(place) for place, _ in best)
            step = Step("Rank", ask.text, told, reply.seconds, k=ask.k, found=len(best), journalled=reply.journalled)
            served.append(Served(best, step))
        return served
