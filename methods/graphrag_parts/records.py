"""What the preparation of GraphRAG stores: units, entities, relations, reports, each a row of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T", "Unit", "Entity", "Relation", "Report")


@dataclass(frozen=True, slots=True)
class Unit:
    """A chunk of text, and the passage that it is a part of."""

    id: str
    text: str
    passage: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the graph.

    Args:
        text: Its name and description, by which it is retrieved.
        degree: Number of its relations.
        units: Ids of the units that name it.
    """

    id: str
    text: str
    name: str
    type: str
    degree: int
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge.

    Args:
        text: The names of both ends, and the description.
        source: Id of an entity, as ``target``; edges have no direction.
        weight: Of the edge.
        units: Ids of the units that state it.
    """

    id: str
    text: str
    source: str
    target: str
    weight: float
    units: tuple[str, ...]

    @property
    def ends(self) -> frozenset[str]:
        """The ids of both ends."""
        return frozenset((self.source, self.target))


@dataclass(frozen=True, slots=True)
class Report:
    """What the model wrote on a community.

    Args:
        id: ``C<number>``, of the community.
        level: 0 is the coarsest.
        parent: Id of the community that it is a part of; "" at level 0.
        entities: Ids of its members.
        parts: Number of communities that it is divided into; 0 for one that is not.
    """

    id: str
    text: str
    level: int
    parent: str
    entities: tuple[str, ...]
    parts: int


KINDS: Mapping[str, type] = {"units": Unit, "entities": Entity, "relations": Relation, "reports": Report}


def rows(records: Sequence[Any]) -> list[dict[str, Any]]:
    """For a table."""
    return [asdict(record) for record in records]


@dataclass(frozen=True)
class Index:
    """All that was prepared for a corpus, by id."""

    units: Mapping[str, Unit]
    entities: Mapping[str, Entity]
    relations: Mapping[str, Relation]
    reports: Mapping[str, Report]

    @cached_property
    def relations_of(self) -> Mapping[str, tuple[Relation, ...]]:
        """The relations of each entity that has some."""
        found: dict[str, list[Relation]] = {}
        for relation in self.relations.values():
            for end in sorted(relation.ends):
                found.setdefault(end, []).append(relation)
        return {id: tuple(relations) for id, relations in found.items()}

    def degrees(self, relation: Relation) -> int:
        """The degrees of both ends together."""
        return sum(self.entities[end].degree for end in relation.ends)


def index_of(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Index:
    """The index from what the preparation stored."""
    return Index(**{name: _read(kind, tables[name]) for name, kind in KINDS.items()})


def _read(kind: type, table: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    records = (
        kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})
        for row in table
    )
    return {record.id: record for record in records}
