"""Questions and claims over a part of the world, each with its chain of facts.

No single passage answers a question: the passages of its chain are several, and none names both an entity of the
question and the answer. Claims and comparisons with yes or no go through a bridge that the question does not name.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lm_eval_rag.harness.scoring.fever import NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from lm_eval_rag.tasks.reasoning_demo.relations import COMPARED, RELATIONS, YEARS
from lm_eval_rag.tasks.reasoning_demo.world import Fact, Part

LABELS = f"{SUPPORTS}, {REFUTES} or {NOT_ENOUGH_INFO}"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A question or claim.

    Args:
        text: What is asked.
        answer: The gold answer.
        type: ``bridge_2`` and so on; ``claim`` for claims.
        chain: The facts that lead to the answer, in the order of the reasoning. Of a claim without enough information
            those that the corpus has.
        topics: The entities that the text names.
        missing: The (subject, relation) that no passage states; None if the chain is complete.
    """

    text: str
    answer: str
    type: str
    chain: tuple[Fact, ...]
    topics: tuple[str, ...]
    missing: tuple[str, str] | None = None

    @property
    def is_claim(self) -> bool:
        """Whether the answer is one of FEVER's labels."""
        return self.type == "claim"


def phrase(nouns: Sequence[str], topic: str) -> str:
    """``the birthplace of the author of X`` for the relations of a chain in order, and its first subject."""
    return "".join(f"the {noun} of " for noun in reversed(nouns)) + topic


def asked(nouns: Sequence[str], topic: str) -> str:
    """The question for the last object of a chain."""
    return f"{'Who' if RELATIONS[nouns[-1]].object == 'person' else 'What'} is {phrase(nouns, topic)}?"


def chains(rng: random.Random, part: Part, hops: int) -> Iterator[tuple[Fact, ...]]:
    """Endless random chains of single-object facts: each object is the next subject, and no entity comes twice."""
    singles = [[f for f in facts if not RELATIONS[f.relation].many] for facts in part.facts.values()]
    by_subject = {facts[0].subject: facts for facts in singles if facts}
    starts = list(by_subject)
    while True:
        chain: list[Fact] = []
        at = rng.choice(starts)
        while len(chain) < hops and by_subject.get(at):
            chain.append(rng.choice(by_subject[at]))
            at = chain[-1].object
        names = [chain[0].subject, *(fact.object for fact in chain)]
        if len(chain) == hops and len(set(names)) == len(names):
            yield tuple(chain)


def bridge(rng: random.Random, part: Part, hops: int) -> Iterator[Reasoning]:
    """What is the ... of the ... of X?"""
    for chain in chains(rng, part, hops):
        text = asked([fact.relation for fact in chain], chain[0].subject)
        yield Reasoning(text, chain[-1].object, f"bridge_{hops}", chain, (chain[0].subject,))


def same(rng: random.Random, part: Part, alike: bool) -> Iterator[Reasoning]:
    """Do the author of X and the author of Y have the same birthplace?"""
    pairs = defaultdict[tuple[str, str], list[tuple[Fact, Fact]]](list)  # relations -> chains of two facts
    for one in part.by_topic.values():
        for two in part.facts.get(one.object, ()):
            if RELATIONS[two.relation].object != "year" and not RELATIONS[two.relation].many:
                pairs[one.relation, two.relation].append((one, two))
    kinds = [nouns for nouns, found in pairs.items() if len({two.object for _, two in found}) < len(found)]
    while True:
        nouns = rng.choice(kinds)
        (one, two), (three, four) = rng.choice(pairs[nouns]), rng.choice(pairs[nouns])
        if two.subject != four.subject and (two.object == four.object) == alike:
            text = f"Do the {nouns[0]} of {one.subject} and the {nouns[0]} of {three.subject} have the same {nouns[1]}?"
            chain = (one, two, three, four)
            yield Reasoning(text, "yes" if alike else "no", "comparison_same", chain, (one.subject, three.subject))


def which(rng: random.Random, part: Part) -> Iterator[Reasoning]:
    """Which was founded first, A or B?"""
    dated = {noun: [fact for fact in part.by_topic.values() if fact.relation == noun] for noun in COMPARED}
    while True:
        noun = rng.choice(list(COMPARED))
        pair = rng.sample(dated[noun], 2)
        if pair[0].object != pair[1].object:
            first = min(pair, key=lambda fact: fact.object)
            subjects = (pair[0].subject, pair[1].subject)
            text = f"Which {COMPARED[noun]}, {subjects[0]} or {subjects[1]}?"
            yield Reasoning(text, first.subject, "comparison_which", tuple(pair), subjects)


def both(rng: random.Random, part: Part) -> Iterator[Reasoning]:
    """Who is among the winners of both A and B? Exactly one person is."""
    lists = [fact for fact in part.by_topic.values() if RELATIONS[fact.relation].many]
    pairs = [(a, b) for a in lists for b in lists if len({*a.objects} & {*b.objects}) == 1]
    while True:
        pair = rng.choice(pairs)
        (answer,) = {*pair[0].objects} & {*pair[1].objects}
        subjects = (pair[0].subject, pair[1].subject)
        text = f"Who is among the winners of both {subjects[0]} and {subjects[1]}?"
        yield Reasoning(text, answer, "intersection", pair, subjects)


def claim(rng: random.Random, part: Part, label: str) -> Iterator[Reasoning]:
    """Claim: The ... of the ... of X is Y. Without enough information no passage states the second relation."""
    for one, two in chains(rng, part, 2):
        relation, missing = two.relation, None
        if label == NOT_ENOUGH_INFO:
            lacking = _lacking(part, one.object)
            if not lacking:
                continue
            relation = rng.choice(lacking)
            missing = (one.object, relation)
        object_ = two.object if label == SUPPORTS else _other(rng, part, relation, two.object)
        inner = phrase([one.relation, relation], one.subject)
        text = f"Claim: T{inner[1:]} is {object_}. {LABELS}?"
        chain = (one,) if missing else (one, two)
        yield Reasoning(text, label, "claim", chain, (one.subject, object_), missing)


def _lacking(part: Part, entity: str) -> list[str]:
    """The relations that an entity could have, and of which no passage says anything."""
    kind = part.kinds[entity]
    return [noun for noun, of in RELATIONS.items() if of.subject == kind and (entity, noun) not in part.by_topic]


def _other(rng: random.Random, part: Part, relation: str, known: str) -> str:
    """An object that a relation could have, but not the known one."""
    kind = RELATIONS[relation].object
    while True:
        name = str(rng.choice(YEARS)) if kind == "year" else rng.choice(part.by_kind[kind])
        if name != known:
            return name


Draw = Callable[[random.Random, Part], Iterator[Reasoning]]
DRAWN: tuple[tuple[Draw, int], ...] = (  # source, number of test questions
    (partial(bridge, hops=2), 90),
    (partial(bridge, hops=3), 60),
    (partial(bridge, hops=4), 40),
    (partial(same, alike=True), 25),
    (partial(same, alike=False), 25),
    (which, 40),
    (both, 30),
    *((partial(claim, label=label), 30) for label in (SUPPORTS, REFUTES, NOT_ENOUGH_INFO)),
)


def draw(rng: random.Random, part: Part, share: float = 1.0) -> list[Reasoning]:
    """The questions of a part in random order; no text twice.

    Args:
        share: Of the numbers in :data:`DRAWN`.
    """
    questions: list[Reasoning] = []
    for source, count in DRAWN:
        chosen: dict[str, Reasoning] = {}
        for question in source(rng, part):
            if question.text not in chosen and needs_several(part, question):
                chosen[question.text] = question
            if len(chosen) >= round(share * count):
                break
        questions += chosen.values()
    rng.shuffle(questions)
    return questions


def needs_several(part: Part, question: Reasoning) -> bool:
    """Whether no passage names an entity of the question beside what answers it.

    For bridges that is the answer; for claims and for yes or no the question's first entity beside the last object or
    the other entity; for comparisons and intersections both entities that are named.
    """
    first, *others = question.topics
    if question.missing is None and question.type not in ("comparison_which", "intersection"):
        others.append(question.chain[-1].object)
    naming = part.naming  # by entity the titles of the passages that name it
    return not any(naming.get(first, set()) & naming.get(other, set()) for other in others)
