"""Lookups in knowledge graphs, through the journal."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.asks import HasGraph, Lookup
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.journal import Call, Journal, Reply
from lm_eval_rag.harness.core.types import Query, Step
from lm_eval_rag.harness.data.folders import META
from lm_eval_rag.harness.data.page_store import read_meta, split_id
from lm_eval_rag.harness.kg import URL_VARIABLE, KnowledgeGraph, open_graph

SHOWN = 2_000  # characters of a reply that the trace keeps: a day of minute prices has a quarter of a million
HOW = f"Give kg=FOLDER or kg=http://..., or set {URL_VARIABLE}."


@dataclass(slots=True)
class Graphs:
    """The knowledge graph of each query, opened when first needed.

    The corpus decides whether there is a graph, ``given`` only which one. ``meta.json`` of a corpus folder says under
    ``kg`` which graph belongs to it: a folder in the cache (if it was not built, the server of ``CRAG_MOCK_API_URL`` is
    used), or null if looking up is not part of the task (CRAG's task 1). A corpus that does not say, such as your own
    documents, has the given graph or none.

    Args:
        given: The graph of all queries whose corpus does not exclude one; None takes each corpus's own.
    """

    given: KnowledgeGraph | None = None
    _opened: dict[str, KnowledgeGraph] = field(default_factory=dict)
    _kg: dict[str, str | None] = field(default_factory=dict)

    def of(self, query: Query) -> KnowledgeGraph | None:
        """The graph of a query; None if its task has none.

        Raises:
            UserError: It needs one, and there is none at hand.
        """
        corpus = split_id(query.corpus or "")[0]
        folder = self._folder(corpus)
        if folder is None:
            return None
        if self.given is not None:
            return self.given
        if corpus not in self._opened:
            self._opened[corpus] = _open(folder, corpus, query)
        return self._opened[corpus]

    def has(self, query: Query) -> bool:
        """Whether a query has a graph.

        Raises:
            UserError: It needs one, and there is none at hand.
        """
        folder = self._folder(split_id(query.corpus or "")[0])
        return folder is not None and bool(folder or self.given) and self.of(query) is not None

    def _folder(self, corpus: str) -> str | None:
        """The folder of a corpus's graph in the cache; None if its task has none, "" if the corpus does not say."""
        if corpus not in self._kg:
            known = bool(corpus) and (cache_dir() / corpus / META).is_file()
            self._kg[corpus] = read_meta(corpus).get("kg", "") if known else ""
        return self._kg[corpus]


def _open(place: str, corpus: str, query: Query) -> KnowledgeGraph:
    if not place:
        raise UserError(f"Question {query.id!r} needs Lookup, and comes without a knowledge graph. {HOW}")
    folder = cache_dir() / place
    try:
        return open_graph(folder if folder.is_dir() else None)
    except UserError:
        raise UserError(
            f"The questions of {corpus} need a knowledge graph, and {folder} was not built. {HOW} `lm-eval-rag build "
            f"{folder.parent.name}` downloads the official files."
        ) from None


@dataclass(frozen=True, slots=True)
class HasGraphBackend:
    """Serves HasGraph."""

    graphs: Graphs
    batch: int = 4096

    def serve(self, asked: Sequence[tuple[Query, HasGraph]]) -> list[Served | CallError]:
        """True or False for each query."""
        found = [self.graphs.has(query) for query, _ in asked]
        return [Served(has, Step("HasGraph", "", "yes" if has else "no")) for has in found]


@dataclass(frozen=True, slots=True)
class LookupBackend:
    """Serves Lookup; equal calls are made once, and a journalled one never again."""

    graphs: Graphs
    journal: Journal
    batch: int = 64

    def serve(self, asked: Sequence[tuple[Query, Lookup]]) -> list[Served | CallError]:
        """The reply to each call; where the task has no graph, a CallError that says so."""
        served: dict[int, Served | CallError] = {}
        by_graph: dict[int, list[int]] = defaultdict(list)
        graphs = [self.graphs.of(query) for query, _ in asked]
        for i, graph in enumerate(graphs):
            by_graph[id(graph)].append(i)
        for positions in by_graph.values():
            graph = graphs[positions[0]]
            if graph is None:
                served |= dict.fromkeys(positions, CallError("this task comes without a knowledge graph"))
                continue
            replies = self._call(graph, [asked[i][1] for i in positions])
            served |= zip(positions, replies, strict=True)
        return [served[i] for i in range(len(asked))]

    def _call(self, graph: KnowledgeGraph, lookups: Sequence[Lookup]) -> list[Served | CallError]:
        key = graph.fingerprint
        calls = [Call(key, ["lookup", ask.function, [list(pair) for pair in ask.arguments]]) for ask in lookups]

        def compute(positions: list[int]) -> list[Any]:
            return graph.call([lookups[i] for i in positions])

        replies = self.journal.serve(calls, compute, self.batch)
        return [_served(ask, reply) for ask, reply in zip(lookups, replies, strict=True)]


def _served(ask: Lookup, reply: Reply | CallError) -> Served | CallError:
    if isinstance(reply, CallError):
        return reply
    given = ", ".join(f"{name}={value!r}" for name, value in ask.arguments)
    text = json.dumps(reply.value, ensure_ascii=False)
    step = Step("Lookup", f"{ask.function}({given})", text[:SHOWN], seconds=reply.seconds, journalled=reply.journalled)
    return Served(reply.value, step)
