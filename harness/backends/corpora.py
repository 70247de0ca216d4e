"""The cheap asks: passages, rules and worked examples of a query's corpus."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any

from lm_eval_rag.harness.backends.page_reading import Reading
from lm_eval_rag.harness.backends.prepared_corpora import Products
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Examples, MatchRules, Retrieve
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.journal import Call, Journal, Reply
from lm_eval_rag.harness.core.types import Passage, Query, Step, WebPage
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.data.own_passages import OwnPassages, has_own_passages
from lm_eval_rag.harness.data.page_store import split_id
from lm_eval_rag.harness.data.products import FOLDER
from lm_eval_rag.harness.data.sentences import split_passages
from lm_eval_rag.harness.retrieval import Retriever, for_other_texts, make_retriever, source_of
from lm_eval_rag.harness.rules.bank import RuleBank

OWN = 8  # corpora of single questions' pages that stay in memory
BUILT = 2  # built corpora that do: one task ends while the next one begins


@dataclass(slots=True)
class Corpora:
    """Corpora with their retriever and rule bank, each opened when first needed.

    Args:
        retriever: Name of the retriever.
        options: Its options.
        given: The one corpus of every query; None opens each query's own (``query.corpus``).
        reading: Reads the pages that come with a question; the last few questions' chunks are kept in memory.
        products: What the method's preparation made of the corpora.
    """

    retriever: str = "bm25"
    options: Mapping[str, Any] = field(default_factory=dict)
    given: Corpus | None = None
    reading: Reading = field(default_factory=Reading)
    products: Products = field(default_factory=Products)
    _corpora: dict[str, Corpus] = field(default_factory=dict)
    _retrievers: dict[str, Retriever] = field(default_factory=dict)
    _banks: dict[str, RuleBank] = field(default_factory=dict)
    _fingerprints: dict[str, str] = field(default_factory=dict)  # of the retrievers that were used
    _own: dict[str, OwnPassages | None] = field(default_factory=dict)

    def corpus(self, query: Query) -> Corpus:
        """The corpus that a query is asked over; empty if it comes with pages of which none has text."""
        if self.given is not None:
            return self.given
        if query.corpus is None:
            raise UserError(
                f"Question {query.id!r} comes without a corpus, and the method retrieves. Give one with "
                "corpus=FILE.jsonl, or take a method that does not retrieve."
            )
        corpus = self._corpora.pop(query.corpus, None)
        if corpus is None:
            corpus = self._open(query.corpus)
        self._corpora[query.corpus] = corpus  # the last is the one that was used last
        return corpus

    def key(self, query: Query) -> str | None:
        """Tells the corpora of queries apart; None where one was given for all."""
        return query.corpus if self.given is None else None

    def searched(self, query: Query, among: str) -> Corpus:
        """What a query's retrieval searches: its corpus, or a table that was prepared from it."""
        if not among:
            return self.corpus(query)
        corpus, old = self.products.derived(self.key(query), among)
        for id in old:
            self._retrievers.pop(id, None)
        return corpus

    def pages(self, query: Query) -> tuple[WebPage, ...]:
        """The pages that come with a query; () where a corpus was given in their place, or it comes without."""
        if self.given is not None or query.corpus is None:
            return ()
        folder, question = split_id(query.corpus)
        return self.reading.pages(query.corpus) if question is not None and self._passages(folder) is None else ()

    def _open(self, id: str) -> Corpus:
        """A built corpus, a question's own passages or chunks; those of its kind that were not used long are closed."""
        folder, question = split_id(id)
        alike = [known for known in self._corpora if (split_id(known)[1] is None) == (question is None)]
        for old in alike[: 1 - (BUILT if question is None else OWN)]:
            for opened in (self._corpora, self._retrievers, self._banks):
                opened.pop(old, None)
        if question is None:
            return open_corpus(id)
        own = self._passages(folder)
        return self.reading.corpus(id) if own is None else own.corpus(question)

    def _passages(self, folder: str) -> OwnPassages | None:
        """The passages of a folder's questions; None if its questions come with pages."""
        if folder not in self._own:
            self._own[folder] = OwnPassages(folder) if has_own_passages(folder) else None
        return self._own[folder]

    def retriever_of(self, corpus: Corpus) -> Retriever:
        """The retriever over a corpus; its index is built or opened here."""
        if corpus.id not in self._retrievers:
            name, options = self.retriever, self.options
            if corpus.id.startswith(f"{FOLDER}/"):  # prepared from the corpus
                name, options = for_other_texts(name, options)
            retriever = make_retriever(name, corpus, **options)
            self._retrievers[corpus.id] = retriever
            if split_id(corpus.id)[1] is None and not corpus.id.startswith(f"{FOLDER}/"):
                self._fingerprints[corpus.id] = retriever.fingerprint
        return self._retrievers[corpus.id]

    def bank_of(self, corpus: Corpus) -> RuleBank:
        """The rule bank of a corpus."""
        if corpus.id not in self._banks:
            self._banks[corpus.id] = RuleBank(corpus)
        return self._banks[corpus.id]

    def identity(self) -> dict[str, str]:
        """Fingerprint of the retriever over each corpus used so far, by corpus id."""
        return dict(sorted(self._fingerprints.items()))


@dataclass(frozen=True, slots=True)
class RetrieveBackend:
    """Serves Retrieve, through the journal."""

    corpora: Corpora
    journal: Journal
    batch: int = 512

    def serve(self, asked: Sequence[tuple[Query, Retrieve]]) -> list[Served | CallError]:
        """The passages of each ask; queries over one corpus are searched together."""
        by_corpus: dict[tuple[str | None, str, bool], list[int]] = defaultdict(list)
        for i, (query, ask) in enumerate(asked):
            by_corpus[self.corpora.key(query), ask.among, ask.sentences].append(i)
        served: dict[int, Served | CallError] = {}
        for positions in by_corpus.values():
            query, ask = asked[positions[0]]
            corpus = self.corpora.searched(query, ask.among)
            asks = [asked[i][1] for i in positions]
            replies = self._search(corpus, asks)
            hits = [hit for reply in replies if isinstance(reply, Reply) for hit in reply.value]
            passages = iter(split_passages(corpus, hits) if ask.sentences else corpus.passages(hits))
            for i, ask, reply in zip(positions, asks, replies, strict=True):
                if isinstance(reply, Reply):
                    source = source_of(self.corpora.retriever_of(corpus), ask.text) if len(corpus) else ""
                    served[i] = _served(ask, reply, tuple(islice(passages, len(reply.value))), source)
                else:
                    served[i] = reply
        return [served[i] for i in range(len(asked))]

    def _search(self, corpus: Corpus, asks: Sequence[Retrieve]) -> list[Reply | CallError]:
        if not len(corpus):
            return [Reply([], 0.0) for _ in asks]
        retriever = self.corpora.retriever_of(corpus)
        calls = [Call(retriever.fingerprint, ["retrieve", ask.text, ask.k]) for ask in asks]

        def compute(positions: list[int]) -> list[Any]:
            found: dict[int, Any] = {}
            for k in sorted({asks[i].k for i in positions}):
                of_k = [i for i in positions if asks[i].k == k]
                found |= zip(of_k, retriever.search([asks[i].text for i in of_k], k), strict=True)
            return [found[i] for i in positions]

        return self.journal.serve(calls, compute, self.batch)


def _served(ask: Retrieve, reply: Reply, passages: tuple[Passage, ...], source: str) -> Served:
    ids = tuple(passage.id for passage in passages)
    step = Step(
        "Retrieve",
        ask.text,
        " ".join(ids),
        reply.seconds,
        k=ask.k,
        found=len(ids),
        journalled=reply.journalled,
        passages=ids,
        source=source,
    )
    return Served(passages, step)


@dataclass(frozen=True, slots=True)
class RulesBackend:
    """Serves MatchRules. It is a look-up in memory, quicker than the journal would be, so the journal is not asked.

    Args:
        gold: Gold answers by (corpus, query id): held by the backend alone, and only for the oracle control.
    """

    corpora: Corpora
    gold: Mapping[tuple[str | None, str], Sequence[str]] = field(default_factory=dict)
    batch: int = 4096

    def serve(self, asked: Sequence[tuple[Query, MatchRules]]) -> list[Served | CallError]:
        """The rules of each ask, best first."""
        return [self._match(query, ask) for query, ask in asked]

    def _match(self, query: Query, ask: MatchRules) -> Served:
        began = perf_counter()
        bank = self.corpora.bank_of(self.corpora.corpus(query))
        rules = bank.match(
            ask.text,
            ask.k,
            order=ask.order,
            control=ask.control,
            repeat=ask.repeat,
            seed=ask.seed,
            gold=self.gold.get((query.corpus, query.id)),
        )
        reply = "; ".join(rule.text for rule in rules)
        return Served(rules, Step("MatchRules", ask.text, reply, seconds=perf_counter() - began))


@dataclass(frozen=True, slots=True)
class ExamplesBackend:
    """Serves Examples: the same seeded rows of F_G for every query of a corpus."""

    corpora: Corpora
    batch: int = 4096

    def serve(self, asked: Sequence[tuple[Query, Examples]]) -> list[Served | CallError]:
        """The worked examples of each ask."""
        return [self._pick(query, ask) for query, ask in asked]

    def _pick(self, query: Query, ask: Examples) -> Served | CallError:
        rows = self.corpora.corpus(query).examples()
        if len(rows) < ask.n:
            raise UserError(f"shots={ask.n}, but the corpus holds {len(rows)} worked examples. Give shots={len(rows)}.")
        picked = tuple(random.Random(ask.seed).sample(rows, ask.n))
        return Served(picked, Step("Examples", f"{ask.n}", " ".join(example.id for example, _ in picked)))
