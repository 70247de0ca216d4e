"""Made-up reading exercises for the embedded generator: documents, rules, questions, answers, no two alike.

Every exercise draws its own names and its own wordings of relations, so nothing can be learnt but to read. One exercise
is a list of documents with several questions; a question's answer is the object that a vote over the documents gives
(:func:`answer_of`). Texts are rendered with the prompt file of the methods.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tiny_names import ANY, BODIES, GIVEN_NAMES, LANDS, SMALL, VERBS, Namer

from lm_eval_rag.harness.core.prompts import Template

PLAIN_NAMES = sorted({*ANY, *LANDS, *GIVEN_NAMES, *BODIES})


@dataclass(frozen=True, slots=True)
class Doc:
    """A stated fact; ``when`` is "" for a static one."""

    when: str
    subject: str
    relation: str
    object: str

    @property
    def text(self) -> str:
        """As the corpora linearise it."""
        return f"{self.when and f'Time {self.when} '}{self.subject} {self.relation} {self.object}."


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the bodies of its rules, best first, and its answer."""

    text: str
    relation: str
    bodies: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """Worked examples (question, answer), documents best first, and questions about them."""

    shots: tuple[tuple[str, str], ...]
    docs: tuple[Doc, ...]
    asked: tuple[Asked, ...]
    guided: bool

    def shared(self, template: Template) -> str:
        """What stands before the rules, the same for all questions."""
        head = template.instruction_rules if self.guided else template.instruction
        parts = [head, *(f"{_ask(template, text)} {answer}" for text, answer in self.shots)]
        if self.docs:
            parts.append(template.documents.format(documents="\n".join(doc.text for doc in self.docs)))
        return "\n".join(parts) + "\n"

    def own(self, template: Template, asked: Asked) -> str:
        """Rules and question, up to the place of the answer."""
        lines = "\n".join(
            f"[Entity1, {body}, Entity2] leads to [Entity1, {asked.relation}, Entity2]" for body in asked.bodies
        )
        return (template.rules.format(rules=lines) + "\n" if lines else "") + _ask(template, asked.text)


def _ask(template: Template, text: str) -> str:
    return f"{template.query.format(query=text)}\n{template.answer}"


class Sampler:
    """An endless source of exercises.

    Args:
        seed: Of all draws.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"tiny {seed}")
        self._namer = Namer(self.rng)

    def exercise(
        self, *, docs: int = 10, questions: int = 6, guided: bool | None = None, hard: float = 1.0
    ) -> Exercise:
        """An exercise.

        Args:
            docs: Number of documents (0: the guess is a name that the question holds).
            questions: At most; the first asks for what the documents were retrieved for.
            guided: Whether the questions have rules; None draws it.
            hard: In [0, 1]: how often names are long, relations alike and objects repeated.
        """
        rng = self.rng
        guided = rng.random() < 0.55 if guided is None else guided
        dated = rng.choices(("day", "year", ""), (0.6, 0.1, 0.3))[0]
        cast = self._namer.some(rng.randint(5, 12), hard)
        subjects, objects = cast[: rng.randint(1, 3)], cast[2:]
        relations = self._relations(rng.randint(3, 7), hard)
        start = rng.randint(1950, 2038)
        now = self._when(dated, start, 1)
        weights = [(rank + 1) ** -rng.choice((0.0, 0.7, 1.4)) for rank in range(len(objects))]
        faithful = rng.choice((0.4, 0.6, 0.85, 1.0))
        crowd = rng.choice(relations) if rng.random() < 0.4 else None  # what other subjects do too, as retrievers find
        made: list[Doc] = []
        for _ in range(docs):
            subject = subjects[0] if rng.random() < faithful else rng.choice(cast)
            relation, object_ = rng.choice(relations), rng.choices(objects, weights)[0]
            if crowd and made and rng.random() < 0.7:
                subject, relation = rng.choice(cast), crowd
            if object_ == subject or rng.random() < 0.18 * hard:
                subject, object_ = rng.choice([name for name in cast if name != subject]), subject
            made.append(Doc(self._when(dated, start, 0), subject, relation, object_))
        made = list(dict.fromkeys(made))
        stated = [doc.relation for doc in made if doc.subject == subjects[0]]
        main = crowd or rng.choice(stated if stated and rng.random() > 0.35 * hard else relations)
        if rng.random() < 0.7:  # as a retriever orders them
            made.sort(key=lambda doc: -(doc.relation == main) - (doc.subject == subjects[0]) - rng.random() * 1.5)
        keys = list(dict.fromkeys((doc.subject, doc.relation) for doc in made))
        rng.shuffle(keys)
        topics = [(subjects[0], main), *((s, r) for s, r in keys if s in subjects or rng.random() < 0.3)]
        asked = [self._asked(made, relations, topic, now, guided, hard) for topic in dict.fromkeys(topics)]
        shots = tuple(
            self._shot(dated, start) for _ in range(rng.choice((1, 2, 3)) if rng.random() < 0.06 * hard else 0)
        )
        return Exercise(shots, tuple(made), tuple(asked[:questions]), guided)

    def _asked(
        self, docs: Sequence[Doc], relations: Sequence[str], topic: tuple[str, str], now: str, guided: bool, hard: float
    ) -> Asked:
        """A question about a subject and relation; with rules, mostly one that only a rule can answer."""
        rng = self.rng
        subject, relation = topic
        bodies: list[str] = []
        if guided:
            there = [doc.relation for doc in docs if doc.subject == subject]
            if rng.random() < 0.2 + 0.45 * hard:  # ask for what no document states, through the relation that one does
                bodies = [relation]
                relation = next((r for r in rng.sample(relations, len(relations)) if r not in there), self._relation())
            more = [r for r in rng.sample(relations, len(relations)) if r != relation and r not in bodies]
            bodies += more[: rng.choice((0, 1, 2, 2, 4))]
            bodies = bodies or [self._relation()]
            if rng.random() < 0.05:
                bodies[-1] = relation
            if rng.random() < 0.5:
                rng.shuffle(bodies)
        elif rng.random() < 0.12 * hard:
            relation = self._relation()
        answer = answer_of(docs, subject, relation, bodies)
        return Asked(_question(now, subject, self._reworded(relation)), relation, tuple(bodies), answer)

    def _shot(self, dated: str, start: int) -> tuple[str, str]:
        subject, answer = self._namer.some(2, 0.5)
        return _question(self._when(dated, start, 0), subject, self._relation()), answer

    def _when(self, dated: str, start: int, later: int) -> str:
        rng = self.rng
        if not dated:
            return ""
        year = start + later if rng.random() < 0.2 or (dated == "year" and later) else start - (rng.random() < 0.1)
        if dated == "year":
            return str(year if later else start - rng.randint(0, 12))
        month = rng.randint(9, 12) if later and year == start else rng.randint(1, 12 if year < start else 9)
        return f"{year}-{month:02}-{rng.randint(1, 28):02}"

    def _reworded(self, relation: str) -> str:
        """Now and then a question words its relation a little differently."""
        words = relation.split()
        if self.rng.random() > 0.06 or len(words) < 2:
            return relation
        at = self.rng.randrange(len(words))
        words[at : at + 1] = [words[at], self.rng.choice(ANY)] if self.rng.random() < 0.5 else [self.rng.choice(SMALL)]
        return " ".join(words)

    def _relations(self, n: int, hard: float) -> list[str]:
        """Different wordings, some of which share most of their words."""
        rng, found = self.rng, [self._relation()]
        while len(found) < n:
            words = rng.choice(found).split()
            if rng.random() < 0.4 * hard:
                at = rng.randrange(len(words))
                words[at : at + rng.randint(0, 1)] = [rng.choice(ANY)]
            else:
                words = self._relation().split()
            if (text := " ".join(words)) not in found:
                found.append(text)
        return found

    def _relation(self) -> str:
        rng = self.rng
        words = [rng.choice(rng.choice((VERBS, ANY)))]
        for _ in range(rng.choice((0, 0, 1, 1, 2, 2, 3, 4, 6))):
            words.append(rng.choice(SMALL) if rng.random() < 0.35 else rng.choice(ANY))
        text = " ".join(words)
        return text.capitalize() if rng.random() < 0.45 else text


def short_exercise(rng: random.Random) -> Exercise:
    """An exercise of names and relations of few plain words, no pair of subject and relation twice.

    Args:
        rng: Where the draws come from.
    """
    words = rng.choices(PLAIN_NAMES, k=80)
    pool = rng.choices(ANY, k=6)

    def name() -> str:
        return " ".join(rng.choice(words).capitalize() for _ in range(rng.choice((1, 1, 2, 2, 3))))

    def relation() -> str:
        return " ".join(rng.choice(pool).lower() for _ in range(rng.choice((1, 2, 3, 4))))

    cast = list(dict.fromkeys(name() for _ in range(20)))
    relations = list(dict.fromkeys(relation() for _ in range(6)))
    subjects, objects = cast[: rng.randint(1, 4)], cast[4 : 4 + rng.randint(3, 9)]
    dated, guided = rng.random() < 0.7, rng.random() < 0.5
    made: dict[tuple[str, str], Doc] = {}
    for _ in range(rng.randint(2, 10)):
        when = f"{rng.randint(1990, 2030)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" if dated else ""
        doc = Doc(when, rng.choice(subjects), rng.choice(relations), rng.choice(objects))
        made.setdefault((doc.subject, doc.relation), doc)
    docs = rng.sample(list(made.values()), len(made))
    asked = []
    for doc in rng.sample(docs, min(len(docs), 7)):
        wanted, bodies = doc.relation, ()
        if guided and rng.random() < 0.6:  # what no document states, through what this one does
            wanted, bodies = relation(), (doc.relation, *rng.sample(relations, rng.random() < 0.3))
        elif guided:
            bodies = (relation(),)
        answer = answer_of(docs, doc.subject, wanted, bodies)
        asked.append(Asked(_question(dated * "2031-05-04", doc.subject, wanted), wanted, bodies, answer))
    return Exercise((), tuple(docs), tuple(asked), guided)


def answer_of(docs: Sequence[Doc], subject: str, relation: str, bodies: Sequence[str]) -> str:
    """The vote: a document counts 1 for the asked relation, 0.8, 0.7, ... for a rule's body, 0.03 for another one.

    Later documents count up to a quarter more; a document that has the subject as object counts a tenth. Without a
    document about the subject the first document's object, and without documents a name out of the question.
    """
    worth = {body: 0.8 - 0.1 * place for place, body in reversed(list(enumerate(bodies)))} | {relation: 1.0}
    days = sorted({doc.when for doc in docs})
    votes: dict[str, float] = {}
    for doc in docs:
        if subject in (doc.subject, doc.object):
            named = doc.object if subject == doc.subject else doc.subject
            share = worth.get(doc.relation, 0.03) * (1.0 if subject == doc.subject else 0.1)
            late = days.index(doc.when) / max(len(days) - 1, 1)
            votes[named] = votes.get(named, 0.0) + share * (1 + 0.25 * late)
    if votes:
        return max(votes, key=lambda name: votes[name])
    inside = subject[subject.rfind("(") + 1 :].rstrip(")")
    return docs[0].object if docs else inside


def _question(now: str, subject: str, relation: str) -> str:
    return f"{now and f'Time {now} '}what does {subject} {relation} ?"
