"""The rules of CRAG's official knowledge-graph baseline as published: films and the encyclopedia, always the first hit.

See ``get_kg_results`` in models/rag_knowledge_graph_baseline.py of facebookresearch/CRAG, which the hybrid system uses
unchanged (arXiv:2408.05141, section 4.5). Questions of the other three domains get no facts. Nor does a year: the
official code asks for a film by an Oscar award in place of a film's id, and that error loses the year's films too.
Departures: at most five names of a field and 20 films of a person, which are more than its limit of length can show; a
reply that holds more than one JSON object is read, where the official code stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.kg.building import FIELDS, MOST_FILMS
from lm_eval_rag.harness.kg.facts import Collector, GraphFacts
from lm_eval_rag.harness.kg.matching import names_of

ADDED = "oscar_awards"  # the aspect of films that our rules add
PUBLISHED_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    **FIELDS,
    "movie": {
        name: tuple(value for value in values if (name, value) != ("movie_aspect", ADDED))
        for name, values in FIELDS["movie"].items()
    },
    "other": FIELDS["encyclopedia"],
}


def facts_as_published(fields: Mapping[str, Any]) -> Plan[GraphFacts]:
    """Look up what the fields of a question name: ``domain`` and the fields of :data:`PUBLISHED_FIELDS`."""
    into, domain = Collector(), fields.get("domain")
    if domain in ("encyclopedia", "other") and isinstance(fields.get("main_entity"), str):
        hits = yield from into.call("open_search_entity_by_name", query=fields["main_entity"])
        if hits:
            into.add(hits[0], (yield from into.call("open_get_entity", entity=hits[0])))
    for name in names_of(fields.get("movie_name")) if domain == "movie" else ():
        film = _first((yield from into.call("movie_get_movie_info", movie_name=name)))
        aspect = str(fields.get("movie_aspect"))
        into.add(f"{name}_{aspect}", film.get(aspect))
    for name in names_of(fields.get("person")) if domain == "movie" else ():
        person = _first((yield from into.call("movie_get_person_info", person_name=name)))
        aspect = str(fields.get("person_aspect"))
        value = person.get(aspect) if aspect in FIELDS["movie"]["person_aspect"] else None
        if aspect.endswith("_movies"):
            films = []
            for number in (value or [])[:MOST_FILMS]:
                films.append((yield from into.call("movie_get_movie_info_by_id", movie_id=number)))
            value = films
        into.add(f"{name}_{aspect}", value)
    return into.result()


def _first(hits: list[dict[str, Any]] | None) -> dict[str, Any]:
    return hits[0] if hits else {}
