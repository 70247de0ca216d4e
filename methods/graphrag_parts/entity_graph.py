"""The entity graph: records of all units with equal names merged, descriptions summarised (sections 3.1.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.preparing import for_each
from lm_eval_rag.harness.core.types import Passage, Plan
from lm_eval_rag.methods.graphrag_parts.extraction import Extracted, same_name
from lm_eval_rag.methods.graphrag_parts.records import Entity, Relation, Unit
from lm_eval_rag.methods.prompts.worded import Wording
from lm_eval_rag.methods.reasoning.steps import STOP


@dataclass(slots=True)
class _Merged:
    """What all units say of one entity or relation."""

    name: str
    types: Counter[str] = field(default_factory=Counter)
    descriptions: dict[str, None] = field(default_factory=dict)
    units: dict[str, None] = field(default_factory=dict)
    weight: float = 0.0

    def add(self, unit: Unit, description: str, weight: float = 0.0) -> None:
        if description:
            self.descriptions[description] = None
        self.units[unit.id] = None
        self.weight += weight


@dataclass(frozen=True, slots=True)
class Graph:
    """Entities and relations, in the order in which they were first named."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]


def graph_of(
    units: Sequence[Unit],
    results: Sequence[Extracted],
    wording: Wording,
    tokens: int,
    counting: bool,
    notes: Counter[str],
) -> Plan[Graph]:
    """The graph of what all units say.

    Args:
        wording: Asks for one description in place of several.
        tokens: Limit of tokens of a description.
        counting: Whether an edge weighs as often as it is stated; otherwise its strengths are summed.
        notes: Gets ``description failed`` and ``blank description``, for which the descriptions are joined.
    """
    nodes, edges = _merged(units, results, counting)
    items = [*nodes.values(), *edges.values()]
    texts = yield from _described(items, wording, tokens, notes)
    ids = {key: f"E{number}" for number, key in enumerate(nodes)}
    relations = [
        Relation(f"R{number}", f"{edge.name}: {text}".strip(": "), ids[a], ids[b], edge.weight, tuple(edge.units))
        for number, ((a, b), edge, text) in enumerate(zip(edges, edges.values(), texts[len(nodes) :], strict=True))
    ]
    degrees = Counter(end for relation in relations for end in relation.ends)
    entities = [
        Entity(
            ids[key],
            f"{node.name}: {text}".strip(": "),
            node.name,
            next((type for type, _ in node.types.most_common(1)), ""),
            degrees[ids[key]],
            tuple(node.units),
        )
        for (key, node), text in zip(nodes.items(), texts[: len(nodes)], strict=True)
    ]
    return Graph(tuple(entities), tuple(relations))


def _merged(
    units: Sequence[Unit], results: Sequence[Extracted], counting: bool
) -> tuple[dict[str, _Merged], dict[tuple[str, str], _Merged]]:
    nodes: dict[str, _Merged] = {}
    edges: dict[tuple[str, str], _Merged] = {}
    for unit, result in zip(units, results, strict=True):
        for entity in result.entities:
            node = nodes.setdefault(same_name(entity.name), _Merged(entity.name))
            node.add(unit, entity.description)
            node.types.update([entity.type] if entity.type else [])
        for stated in result.relations:
            a, b = sorted((same_name(stated.source), same_name(stated.target)))
            edge = edges.setdefault((a, b), _Merged(f"{stated.source} - {stated.target}"))
            edge.add(unit, stated.description, 1.0 if counting else stated.strength)
    return nodes, edges


def _described(items: Sequence[_Merged], wording: Wording, tokens: int, notes: Counter[str]) -> Plan[list[str]]:
    """One description of each item; the model is asked where there are several."""
    several = [number for number, item in enumerate(items) if len(item.descriptions) > 1]

    def describe(number: int) -> Plan[str]:
        texts = [Passage(f"{i}", text) for i, text in enumerate(items[number].descriptions)]
        prompt = wording.prompt(texts, name=items[number].name)
        return generate(prompt, temperature=0.0, max_tokens=tokens, stop=STOP)

    texts = [" ".join(item.descriptions) for item in items]
    for number, reply in zip(several, (yield from for_each(several, describe)), strict=True):
        if isinstance(reply, CallError) or not reply.strip():
            notes["description failed" if isinstance(reply, CallError) else "blank description"] += 1
        else:
            texts[number] = " ".join(reply.split())
    return texts
