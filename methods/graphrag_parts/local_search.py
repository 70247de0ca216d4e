"""Local search: what is around the entities that the question retrieves (in the authors' code, not in the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.web.chunking import pieces
from lm_eval_rag.methods.graphrag_parts.records import Entity, Index, Relation, Report, Unit
from lm_eval_rag.methods.graphrag_parts.text_units import within

UNITS = 0.5  # share of the context; entities and relations have what units and reports leave
RELATIONS = 10  # that lead out of the chosen entities, for each of these


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is shown: texts first, so that a small model loses reports before sources."""

    units: tuple[Unit, ...]
    elements: tuple[Entity | Relation, ...]
    reports: tuple[Report, ...]

    def shown(self) -> list[Passage]:
        """For a prompt, the most important first."""
        return [Passage(one.id, one.text) for one in (*self.units, *self.elements, *self.reports)]

    def passages(self) -> tuple[Passage, ...]:
        """The passages of the units, each once, in their order."""
        texts: dict[str, list[str]] = {}
        for unit in self.units:
            texts.setdefault(unit.passage, []).append(unit.text)
        return tuple(Passage(id, "\n".join(parts)) for id, parts in texts.items())


def surroundings(index: Index, chosen: Sequence[Entity], tokens: int, share: float) -> Surroundings:
    """What is around the chosen entities, the best first, in ``tokens`` tokens, a ``share`` of them for reports.

    Of a first unit that is longer than the room for units its beginning is shown.
    """
    units, reports = units_around(index, chosen), reports_around(index, chosen)
    elements: list[Entity | Relation] = [*chosen, *relations_around(index, chosen)]
    for_units, for_reports = int(UNITS * tokens), int(share * tokens)
    rest = tokens - for_units - for_reports
    fitting = within([(unit, unit.text) for unit in units], for_units)
    begun = [replace(unit, text=text) for unit in units[:1] for text in islice(pieces(unit.text, for_units or 1), 1)]
    return Surroundings(
        tuple(fitting or begun),
        tuple(within([(one, one.text) for one in elements], rest)),
        tuple(within([(report, report.text) for report in reports], for_reports)),
    )


def units_around(index: Index, chosen: Sequence[Entity]) -> list[Unit]:
    """The units that name the entities, in the order of these; of one entity first those with most of its relations."""
    units: dict[str, None] = {}
    for entity in chosen:
        stated = Counter(unit for relation in index.relations_of.get(entity.id, ()) for unit in relation.units)
        units.update(dict.fromkeys(sorted(entity.units, key=lambda unit: -stated[unit])))
    return [index.units[id] for id in units]


def relations_around(index: Index, chosen: Sequence[Entity]) -> list[Relation]:
    """The relations between the entities, then those to what most of them are related to; of equal ones by degree."""
    ids = {entity.id for entity in chosen}
    around = {one.id: one for entity in chosen for one in index.relations_of.get(entity.id, ())}
    inside = [one for one in around.values() if one.ends <= ids]
    outside = [one for one in around.values() if not one.ends <= ids]
    links = Counter(other for one in outside for other in one.ends - ids)
    outside.sort(key=lambda one: (-max(links[other] for other in one.ends - ids), -index.degrees(one), -one.weight))
    inside.sort(key=lambda one: (-index.degrees(one), -one.weight))
    return [*inside, *outside[: RELATIONS * len(chosen)]]


def reports_around(index: Index, chosen: Sequence[Entity]) -> list[Report]:
    """The reports on communities of the entities: first those with most of them, of equal ones the finer."""
    ids = {entity.id for entity in chosen}
    matches = {report.id: len(ids.intersection(report.entities)) for report in index.reports.values()}
    found = [report for report in index.reports.values() if matches[report.id]]
    return sorted(found, key=lambda report: (-matches[report.id], -report.level))
