"""An invented world of dated facts with planted rules of known confidence, noise, distractors and paraphrases.

Each planted rule (body -> head) is exact: ``round(confidence * 95)`` of the body's 95 documents are followed, 1 to 90
days later, by a document with the head and the same pair of entities. No pair has both relations in any other way, so
mining must find exactly the planted confidence. The other body facts give the rule_required questions: their heads
become true after the last document.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice

from lm_eval_rag.tasks.ruleqa_demo.names import Names

START = date(2031, 1, 1)
END, HALFWAY, LAST = 1095, 1185, 1275  # days after START: end of documents, training questions, test questions
BODY_FACTS, NOISE, DISTRACTORS = 95, 160, 890
PARAPHRASED = 0.15
# number of questions per part: (rule_required, direct, unreachable)
TEST, TRAIN = (130, 56, 14), (90, 50, 10)

# relation -> (kind of subject, kind of object, wordings); the seed selects the usual wording, others are paraphrases
RELATIONS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "birth": ("person", "place", ("was born in", "was born and raised in", "had been born in")),
    "citizen": ("person", "place", ("is a citizen of", "became a citizen of", "has the citizenship of")),
    "move": ("person", "place", ("moved to", "moved house to", "has moved away to")),
    "tax": ("person", "place", ("pays taxes in", "has to pay taxes in", "pays all taxes in")),
    "hire": ("person", "body", ("was hired by", "was newly hired by", "got hired by")),
    "work": ("person", "body", ("works for", "now works for", "works full time for")),
    "study": ("person", "body", ("studied at", "has studied at", "once studied at")),
    "give": ("person", "body", ("gave money to", "gave some money to", "has given money to")),
    "engage": ("person", "person", ("became engaged to", "got engaged to", "is engaged to")),
    "marry": ("person", "person", ("married", "got married to", "is married to")),
    "lesson": ("person", "person", ("took lessons from", "takes lessons from", "took many lessons from")),
    "thank": ("person", "person", ("thanked", "publicly thanked", "thanked in a speech")),
    "argue": ("person", "person", ("argued with", "argued loudly with", "has argued with")),
    "sue": ("person", "person", ("sued", "sued in court", "has sued")),
    "talk": ("place", "place", ("opened talks with", "began talks with", "held talks with")),
    "envoy": ("place", "place", ("exchanged envoys with", "has exchanged envoys with", "sent envoys to")),
    "treaty": ("place", "place", ("signed a treaty with", "signed a new treaty with", "has signed a treaty with")),
    "threat": ("place", "place", ("threatened", "openly threatened", "has threatened")),
    "tariff": ("place", "place", ("imposed tariffs on", "imposed high tariffs on", "imposes tariffs on")),
    "praise": ("body", "body", ("praised", "praised the work of", "has praised")),
    "merge": ("body", "body", ("merged with", "has merged with", "agreed to have merged with")),
    "supply": ("body", "body", ("supplied goods to", "supplies goods to", "supplied more goods to")),
    "bill": ("body", "body", ("sent a bill to", "sent a large bill to", "has sent a bill to")),
    # relations without rules
    "letter": ("person", "person", ("wrote a letter to", "wrote a long letter to", "has written a letter to")),
    "visit": ("person", "place", ("visited", "paid a visit to", "visited again")),
    "complain": ("person", "body", ("complained about", "complained again about", "has complained about")),
    "fair": ("body", "place", ("held a fair in", "held a summer fair in", "has held a fair in")),
    "song": ("place", "person", ("wrote a song about", "wrote an old song about", "has written a song about")),
}
PLANTED: tuple[tuple[str, str, float], ...] = (  # body, head, confidence
    ("birth", "citizen", 0.9),
    ("move", "citizen", 0.4),
    ("move", "tax", 0.7),
    ("hire", "work", 0.8),
    ("study", "give", 0.5),
    ("study", "work", 0.3),
    ("engage", "marry", 0.8),
    ("lesson", "thank", 0.6),
    ("argue", "sue", 0.5),
    ("talk", "treaty", 0.7),
    ("envoy", "treaty", 0.4),
    ("threat", "tariff", 0.6),
    ("praise", "merge", 0.6),
    ("supply", "bill", 0.7),
)
BODIES = tuple(dict.fromkeys(body for body, _, _ in PLANTED))
HEADS = tuple(dict.fromkeys(head for _, head, _ in PLANTED))
SIZES = {"person": 240, "place": 60, "body": 90}


@dataclass(frozen=True, slots=True)
class Fact:
    """A dated fact; ``relation`` is the usual wording, ``wording`` is the one in its document."""

    subject: str
    relation: str
    object: str
    time: str
    wording: str

    @property
    def text(self) -> str:
        """The text of its document."""
        return f"Time {self.time} {self.subject} {self.wording} {self.object}."


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question with its answers: all objects of one subject, relation and day; ``drawn_as`` is its intended slice."""

    subject: str
    relation: str
    time: str
    wording: str
    answers: tuple[str, ...]
    drawn_as: str

    @property
    def text(self) -> str:
        """The question's text."""
        return f"Time {self.time} what does {self.subject} {self.wording} ?"


@dataclass(frozen=True, slots=True)
class World:
    """Documents sorted by time, three disjoint sets of questions, and the planted rules (body, head, confidence)."""

    documents: tuple[Fact, ...]
    retriever_train: tuple[DemoQuestion, ...]
    generator_train: tuple[DemoQuestion, ...]
    test: tuple[DemoQuestion, ...]
    planted: tuple[tuple[str, str, float], ...]


Raw = tuple[str, str, str, int]  # subject, relation's key, object, day


def make_world(seed: int = 0) -> World:
    """The world of a seed; other seeds have other names, usual wordings and facts."""
    rng = random.Random(f"ruleqa_demo {seed}")
    usual = {key: rng.sample(wordings, len(wordings)) for key, (_, _, wordings) in RELATIONS.items()}
    pairs = _pair_streams(rng, _entities(rng))
    facts, open_heads = _planted_facts(rng, pairs)
    direct = rng.sample([fact for fact in facts if fact[1] in HEADS], TEST[1] + 2 * TRAIN[1])
    facts += [(*_link(rng, pairs, HEADS), rng.randrange(END)) for _ in range(NOISE)]
    others = [key for key in RELATIONS if key not in BODIES + HEADS]
    facts += [(*_link(rng, pairs, others), rng.randrange(END)) for _ in range(DISTRACTORS)]
    rng.shuffle(open_heads)
    needing, repeated = iter(open_heads), iter(direct)
    taken: set[tuple[str, str, int]] = set()
    parts: list[tuple[DemoQuestion, ...]] = []
    for (rule, known, none), first, last in ((TRAIN, END, HALFWAY), (TRAIN, END, HALFWAY), (TEST, HALFWAY, LAST)):
        drawn = [(*link, "rule_required") for link in islice(needing, rule)]
        drawn += [(*fact[:3], "direct") for fact in islice(repeated, known)]
        drawn += [(*_link(rng, pairs, HEADS), "unreachable") for _ in range(none)]
        rng.shuffle(drawn)
        parts.append(tuple(_questions(rng, usual, drawn, range(first, last), taken)))
    documents = [
        Fact(subject, usual[key][0], object_, _iso(day), _wording(rng, usual[key]))
        for subject, key, object_, day in sorted(set(facts), key=lambda fact: (fact[3], fact))
    ]
    planted = tuple((usual[body][0], usual[head][0], confidence) for body, head, confidence in PLANTED)
    return World(tuple(documents), parts[0], parts[1], parts[2], planted)


def _entities(rng: random.Random) -> dict[str, list[str]]:
    """Names by kind."""
    names = Names(rng)
    places = [names.place() for _ in range(SIZES["place"])]
    return {
        "person": [names.person() for _ in range(SIZES["person"])],
        "place": places,
        "body": [names.organisation(rng.choice(places)) for _ in range(SIZES["body"])],
    }


def _pair_streams(rng: random.Random, entities: dict[str, list[str]]) -> dict[str, Iterator[tuple[str, str]]]:
    """For each relation an endless stream of pairs; no pair is repeated, even across relations."""
    used: set[tuple[str, str]] = set()

    def stream(subjects: Sequence[str], objects: Sequence[str]) -> Iterator[tuple[str, str]]:
        weights = [(rank + 1) ** -0.5 for rank in range(max(len(subjects), len(objects)))]
        while True:
            (subject,) = rng.choices(subjects, weights[: len(subjects)])
            (object_,) = rng.choices(objects, weights[: len(objects)])
            if subject != object_ and (subject, object_) not in used:
                used.add((subject, object_))
                yield subject, object_

    return {key: stream(entities[subject], entities[object_]) for key, (subject, object_, _) in RELATIONS.items()}


def _planted_facts(
    rng: random.Random, pairs: dict[str, Iterator[tuple[str, str]]]
) -> tuple[list[Raw], list[tuple[str, str, str]]]:
    """Body facts with the head facts that follow them, and the heads (as links) without a document."""
    facts: list[Raw] = []
    open_heads: list[tuple[str, str, str]] = []
    for body in BODIES:
        bodies = [(*next(pairs[body]), rng.randrange(END - 90)) for _ in range(BODY_FACTS)]
        facts += [(subject, body, object_, day) for subject, object_, day in bodies]
        for _, head, confidence in (rule for rule in PLANTED if rule[0] == body):
            rng.shuffle(bodies)
            followed = round(confidence * BODY_FACTS)
            facts += [(s, head, o, day + rng.randint(1, 90)) for s, o, day in bodies[:followed]]
            open_heads += [(s, head, o) for s, o, _ in bodies[followed:]]
    return facts, open_heads


def _link(
    rng: random.Random, pairs: dict[str, Iterator[tuple[str, str]]], relations: Sequence[str]
) -> tuple[str, str, str]:
    """A new pair with one of ``relations``."""
    key = rng.choice(relations)
    subject, object_ = next(pairs[key])
    return subject, key, object_


def _questions(
    rng: random.Random,
    usual: dict[str, list[str]],
    drawn: list[tuple[str, str, str, str]],
    days: range,
    taken: set[tuple[str, str, int]],
) -> Iterator[DemoQuestion]:
    """One question per link, on a day without another question in ``taken`` about it, so that each has one answer."""
    for subject, key, object_, drawn_as in drawn:
        day = rng.choice(days)
        while (subject, key, day) in taken:
            day = rng.choice(days)
        taken.add((subject, key, day))
        yield DemoQuestion(subject, usual[key][0], _iso(day), _wording(rng, usual[key]), (object_,), drawn_as)


def _wording(rng: random.Random, wordings: Sequence[str]) -> str:
    return rng.choice(wordings[1:]) if rng.random() < PARAPHRASED else wordings[0]


def _iso(day: int) -> str:
    return (START + timedelta(days=day)).isoformat()
