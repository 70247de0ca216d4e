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
from lm_eval_rag.harness.data.page_store import read_meta, split_id
from lm_eval_rag.harness.kg import URL_VARIABLE, KnowledgeGraph, open_graph

SHOWN = 2_000  # characters of a reply that the trace keeps: a day of minute prices has a quarter of a million
HOW = f"Give kg=FOLDER or kg=http://..., or set {URL_VARIABLE}."


@dataclass(slots=True)
class Graphs:
    """The knowledge graph of each query, opened when first needed.

    ``meta.json`` of a corpus folder says under ``kg`` which graph belongs to it: a folder in the cache (where it was
    built, else the server of ``CRAG_MOCK_API_URL`` stands in), or null where looking up is not part of the task.

    Args:
        given: The one graph of all queries; None takes each corpus's own.
    """

    given: KnowledgeGraph | None = None
    _opened: dict[str, KnowledgeGraph | None] = field(default_factory=dict)
    _belongs: dict[str, bool] = field(default_factory=dict)

    def of(self, query: Query) -> KnowledgeGraph | None:
        """The graph of a query; None where its task has none.

        Raises:
            UserError: It needs one, and there is none at hand.
        """
        if self.given is not None:
            return self.given
        corpus = split_id(query.corpus or "")[0]
        if corpus not in self._opened:
            self._opened[corpus] = _graph_of(corpus, query)
        return self._opened[corpus]

    def has(self, query: Query) -> bool:
        """Whether a graph was given or belongs to the query's corpus; it is not opened."""
        corpus = split_id(query.corpus or "")[0]
        if self.given is None and corpus not in self._belongs:
            self._belongs[corpus] = (cache_dir() / corpus / "meta.json").is_file() and bool(read_meta(corpus).get("kg"))
        return self.given is not None or self._belongs[corpus]


def _graph_of(corpus: str, query: Query) -> KnowledgeGraph | None:
    meta = read_meta(corpus) if corpus else {}
    if "kg" not in meta:
        raise UserError(f"Question {query.id!r} needs Lookup, and comes without a knowledge graph. {HOW}")
    if meta["kg"] is None:
        return None
    folder = cache_dir() / str(meta["kg"])
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
