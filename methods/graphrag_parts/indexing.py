"""The preparation of GraphRAG: units, entity graph, communities and their reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from lm_eval_rag.harness.core.parameters import Natural, Positive
from lm_eval_rag.harness.core.preparing import Estimate, Product
from lm_eval_rag.harness.core.types import Passage, Plan
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.graphrag_parts.communities import check_packages, communities_of, reports_of
from lm_eval_rag.methods.graphrag_parts.entity_graph import graph_of
from lm_eval_rag.methods.graphrag_parts.extraction import extracted
from lm_eval_rag.methods.graphrag_parts.records import rows
from lm_eval_rag.methods.graphrag_parts.text_units import units_of
from lm_eval_rag.methods.prompts.worded import wordings

VERSION = "graphrag-1.1"  # of its prompts, and of its code
TYPES = "person, organisation, place, event"
FURTHER = 4.0  # calls for descriptions and reports per 600 tokens, by the sizes of the paper's first graph
Variant = Literal["paper", "official"]


def build_graph(
    passages: Sequence[Passage],
    *,
    chunk_tokens: Positive = 1200,
    chunk_overlap: Natural = 100,
    gleanings: Natural = 1,
    entity_types: str = TYPES,
    community_size: Positive = 10,
    report_room: Positive = 8000,
    extraction_tokens: Positive = 2000,
    description_tokens: Positive = 500,
    report_tokens: Positive = 2000,
    seed: Natural = 0,
    variant: Variant = "paper",
    prompt_file: str | None = None,
) -> Plan[Product]:
    """The graph with the reports on its communities; the parameters are those of the method."""
    check_packages()
    wording, notes = wordings("graphrag", prompt_file), Counter[str]()
    units = units_of(passages, chunk_tokens, chunk_overlap)
    results = yield from extracted(units, wording, entity_types, gleanings, extraction_tokens, notes)
    counting = variant == "paper"
    graph = yield from graph_of(units, results, wording["describe"], description_tokens, counting, notes)
    communities = communities_of(graph, community_size, seed)
    reports = yield from reports_of(communities, graph, wording["report"], report_room, report_tokens, notes)
    records = {"units": units, "entities": graph.entities, "relations": graph.relations, "reports": reports}
    return Product({name: rows(of_kind) for name, of_kind in records.items()}, +notes)


def estimated_calls(
    passages: Sequence[Passage], *, chunk_tokens: int, chunk_overlap: int, gleanings: int, **others: Any
) -> Estimate:
    """One call and the gleanings for each unit; descriptions and reports as in the paper's first graph."""
    units = units_of(passages, chunk_tokens, chunk_overlap)
    tokens = sum(count_words(unit.text) for unit in units)
    return Estimate(len(units), round(len(units) * (1 + gleanings) + FURTHER * tokens / 600))
