"""The invented world: named entities, one short passage for each, and facts that link them.

A world has two parts without a common entity: one for the test questions, one for training questions. Many names are
alike (a family name, half of a title), so that a search for one entity also finds others.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lm_eval_rag.tasks.reasoning_demo.names import family_name, given_name, place_name
from lm_eval_rag.tasks.reasoning_demo.relations import (
    ADJECTIVES,
    BODIES,
    ENDINGS,
    NOUNS,
    PRIZES,
    RELATIONS,
    SIZES,
    YEARS,
)
from lm_eval_rag.tasks.wikipedia.records import Page

OMITTED = 0.6  # share of the passages that leave out one of the facts that they could state
FAMILY, WINNERS = 2, 3  # persons of a family name; winners of a prize


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence of a passage.

    Args:
        subject: Also the title of the passage.
        relation: A key of :data:`~lm_eval_rag.tasks.reasoning_demo.relations.RELATIONS`.
        objects: One, or the members of a list.
    """

    subject: str
    relation: str
    objects: tuple[str, ...]

    @property
    def object(self) -> str:
        """The objects as one text."""
        return listed(self.objects)

    @property
    def text(self) -> str:
        """The sentence."""
        return RELATIONS[self.relation].sentence.format(s=self.subject, o=self.object)


@dataclass(frozen=True)
class Part:
    """Entities with their passages.

    Args:
        kinds: Name of each entity -> its kind.
        facts: Name of each entity -> the facts that its passage states, in the order of its sentences.
    """

    kinds: Mapping[str, str]
    facts: Mapping[str, tuple[Fact, ...]]

    @cached_property
    def by_topic(self) -> dict[tuple[str, str], Fact]:
        """(subject, relation) -> fact."""
        return {(fact.subject, fact.relation): fact for facts in self.facts.values() for fact in facts}

    @cached_property
    def by_kind(self) -> dict[str, list[str]]:
        """Kind -> names, in order."""
        names = defaultdict[str, list[str]](list)
        for name, kind in self.kinds.items():
            names[kind].append(name)
        return dict(names)

    @cached_property
    def naming(self) -> dict[str, set[str]]:
        """Entity or year -> the titles of the passages that name it."""
        titles = defaultdict[str, set[str]](set)
        for name, facts in self.facts.items():
            for mentioned in (name, *(one for fact in facts for one in fact.objects)):
                titles[mentioned].add(name)
        return dict(titles)

    @cached_property
    def pages(self) -> tuple[Page, ...]:
        """The passages."""
        return tuple(Page(name, tuple(fact.text for fact in facts)) for name, facts in self.facts.items())

    def place(self, fact: Fact) -> tuple[str, int]:
        """Passage and index of the sentence that states a fact."""
        return fact.subject, self.facts[fact.subject].index(fact)


def make_parts(seed: int = 0) -> tuple[Part, Part]:
    """The test part and the training part of a seed's world; no entity is in both."""
    rng = random.Random(f"reasoning_demo {seed}")
    named = _entities(rng)
    halves = {kind: (names[: SIZES[kind]], names[SIZES[kind] :]) for kind, names in named.items()}
    return _part(rng, {k: h[0] for k, h in halves.items()}), _part(rng, {k: h[1] for k, h in halves.items()})


def listed(names: Sequence[str]) -> str:
    """``A``, ``A and B`` or ``A, B and C``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _entities(rng: random.Random) -> dict[str, list[str]]:
    """Distinct names by kind, one and a half times as many as the test part has, in random order."""
    needed = {kind: size + size // 2 for kind, size in SIZES.items()}
    families = _distinct(lambda: family_name(rng), needed["person"] // FAMILY)
    places = _distinct(lambda: place_name(rng), sum(needed[kind] for kind in ("town", "body", "river", "province")))
    stems, twins, rest = (
        places[: needed["town"] // 2],
        places[needed["town"] // 2 : (needed["town"] + needed["body"]) // 2],
        iter(places[(needed["town"] + needed["body"]) // 2 :]),
    )
    sources: dict[str, Callable[[], str]] = {
        "work": lambda: f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}",
        "person": lambda: f"{given_name(rng)} {rng.choice(families)}",
        "town": lambda: f"{rng.choice(stems)} {rng.choice(ENDINGS)}",
        "body": lambda: f"{rng.choice(twins)} {rng.choice(BODIES)}",
        "prize": lambda: f"{rng.choice(families)} {rng.choice(PRIZES)}",
        "river": lambda: next(rest),
        "province": lambda: next(rest),
    }
    return {kind: _distinct(draw, needed[kind]) for kind, draw in sources.items()}


def _distinct(draw: Callable[[], str], count: int) -> list[str]:
    """So many different names, in the order in which they were drawn."""
    names: dict[str, None] = {}
    while len(names) < count:
        names[draw()] = None
    return list(names)


def _part(rng: random.Random, named: Mapping[str, Sequence[str]]) -> Part:
    kinds = {name: kind for kind, names in named.items() for name in names}
    facts = {name: _passage(rng, name, kind, named) for name, kind in kinds.items()}
    return Part(kinds, facts)


def _passage(rng: random.Random, name: str, kind: str, named: Mapping[str, Sequence[str]]) -> tuple[Fact, ...]:
    """The facts of one passage, 2 or 3, in random order."""
    relations = [noun for noun, relation in RELATIONS.items() if relation.subject == kind]
    rng.shuffle(relations)
    if len(relations) > 2 and rng.random() < OMITTED:
        relations.pop()
    others = {other: [one for one in names if one != name] for other, names in named.items()}
    return tuple(Fact(name, noun, _objects(rng, noun, others)) for noun in relations)


def _objects(rng: random.Random, noun: str, named: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    relation = RELATIONS[noun]
    if relation.object == "year":
        return (str(rng.choice(YEARS)),)
    return tuple(rng.sample(named[relation.object], WINNERS if relation.many else 1))
