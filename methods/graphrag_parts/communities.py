"""Communities of the entity graph by hierarchical Leiden (section 3.1.4), with reports bottom-up (section 3.1.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.preparing import for_each
from lm_eval_rag.harness.core.types import Passage, Plan
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.graphrag_parts.entity_graph import Graph
from lm_eval_rag.methods.graphrag_parts.records import Report
from lm_eval_rag.methods.graphrag_parts.text_units import within
from lm_eval_rag.methods.prompts.worded import Wording
from lm_eval_rag.methods.reasoning.steps import STOP


@dataclass(frozen=True, slots=True)
class Community:
    """A group of entities; see :class:`Report`."""

    id: str
    level: int
    parent: str
    entities: tuple[str, ...]


def check_packages() -> None:
    """Raise a UserError unless graspologic-native is installed."""
    need("The method graphrag", "graphrag", "graspologic_native")


def communities_of(graph: Graph, most: int, seed: int) -> list[Community]:
    """The communities of all levels, the coarsest first; entities without relations are in none.

    Args:
        most: Entities of a community that is not divided further.
    """
    import graspologic_native

    edges = sorted((*sorted(relation.ends), float(relation.weight)) for relation in graph.relations)
    if not edges:
        return []
    found: Any = graspologic_native.hierarchical_leiden(edges=edges, max_cluster_size=most, seed=seed)
    members: dict[tuple[int, int], list[str]] = {}
    parents: dict[tuple[int, int], str] = {}
    for one in found:
        members.setdefault((one.level, one.cluster), []).append(one.node)
        parents[one.level, one.cluster] = "" if one.parent_cluster is None else f"C{one.parent_cluster}"
    order = {entity.id: place for place, entity in enumerate(graph.entities)}
    return [
        Community(f"C{cluster}", level, parents[level, cluster], tuple(sorted(nodes, key=order.__getitem__)))
        for (level, cluster), nodes in sorted(members.items())
    ]


def reports_of(
    communities: Sequence[Community], graph: Graph, wording: Wording, room: int, tokens: int, notes: Counter[str]
) -> Plan[list[Report]]:
    """A report on each community, the finest levels first, since coarse ones may be made of the reports below.

    Args:
        room: Tokens that a report may be written from.
        tokens: Limit of tokens of a report.
        notes: Gets ``report failed`` and ``blank report``; such communities have none.
    """
    context = Context(graph, communities, room)
    reports: dict[str, str] = {}
    for level in sorted({community.level for community in communities}, reverse=True):
        of_level = [community for community in communities if community.level == level]

        def write(community: Community) -> Plan[str]:
            prompt = wording.prompt(context.of(community, reports), count=str(len(community.entities)))
            return generate(prompt, temperature=0.0, max_tokens=tokens, stop=STOP)

        for community, reply in zip(of_level, (yield from for_each(of_level, write)), strict=True):
            if isinstance(reply, CallError) or not reply.strip():
                notes["report failed" if isinstance(reply, CallError) else "blank report"] += 1
            else:
                reports[community.id] = reply.strip()
    parts = Counter(community.parent for community in communities)
    return [
        Report(one.id, reports[one.id], one.level, one.parent, one.entities, parts[one.id])
        for one in communities
        if one.id in reports
    ]


class Context:
    """What reports are written from."""

    def __init__(self, graph: Graph, communities: Sequence[Community], room: int) -> None:
        self.room = room
        self._entities = {entity.id: entity for entity in graph.entities}
        degree = {entity.id: entity.degree for entity in graph.entities}
        self._relations = sorted(graph.relations, key=lambda one: -sum(degree[end] for end in one.ends))
        self._of: dict[str, list[int]] = {}  # entity -> the places of its relations
        for place, relation in enumerate(self._relations):
            for end in relation.ends:
                self._of.setdefault(end, []).append(place)
        self._parts: dict[str, list[Community]] = {}
        for community in communities:
            self._parts.setdefault(community.parent, []).append(community)

    def of(self, community: Community, reports: Mapping[str, str]) -> list[Passage]:
        """The entities and relations of a community, those of the highest degrees first, as far as there is room.

        Where they do not fit, reports take the place of its parts, the largest first, until all fits.
        """
        elements = self.elements(community.entities)
        replaced: dict[str, str] = {}
        parts = [part for part in self._parts.get(community.id, []) if part.id in reports]
        for part in sorted(parts, key=lambda part: -self._size(self.elements(part.entities))):
            if self._size(elements) + self._size(replaced) <= self.room:
                break
            replaced[part.id] = reports[part.id]
            inside = self.elements(part.entities)
            elements = {id: text for id, text in elements.items() if id not in inside}
        texts = [*replaced.items(), *elements.items()]
        return within([(Passage(id, text), text) for id, text in texts], self.room)

    def elements(self, entities: Sequence[str]) -> dict[str, str]:
        """The texts of entities and of the relations between them, by id: of each relation both ends and itself."""
        members = set(entities)
        texts: dict[str, str] = {}
        for place in sorted({place for id in members for place in self._of.get(id, ())}):
            relation = self._relations[place]
            if relation.ends <= members:
                for end in (relation.source, relation.target):
                    texts.setdefault(end, self._entities[end].text)
                texts[relation.id] = relation.text
        for id in entities:
            texts.setdefault(id, self._entities[id].text)
        return texts

    @staticmethod
    def _size(texts: Mapping[str, str]) -> int:
        return sum(map(count_words, texts.values()))
