"""Generated reading exercises for training the embedded generator: documents, rules, questions, answers.

Every exercise has new names and new wordings of relations, so a model can only learn to read, not to memorise. An
exercise is a list of documents with several questions. The answer to a question is the result of a vote over the
documents (:func:`answer_of`). Texts are rendered with the prompt file of the methods.
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
    """A document that states a fact; ``when`` is "" for a static fact."""

    when: str
    subject: str
    relation: str
    object: str

    @property
    def text(self) -> str:
        """The fact as text, as in the corpora."""
        return f"{self.when and f'Time {self.when} '}{self.subject} {self.relation} {self.object}."


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with the bodies of its rules (best first) and its answer."""

    text: str
    relation: str
    bodies: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """Worked examples (question, answer), documents (best first), and questions about them."""

    shots: tuple[tuple[str, str], ...]
    docs: tuple[Doc, ...]
    asked: tuple[Asked, ...]
    guided: bool

    def shared(self, template: Template) -> str:
        """The text before the rules, shared by all questions."""
        head = template.instruction_rules if self.guided else template.instruction
        parts = [head, *(f"{_ask(template, text)} {answer}" for text, answer in self.shots)]
        if self.docs:
            parts.append(template.documents.format(documents="\n".join(doc.text for doc in self.docs)))
        return "\n".join(parts) + "\n"

    def own(self, template: Template, asked: Asked) -> str:
        """Rules and question, up to the answer."""
        lines = "\n".join(
            f"[Entity1, {body}, Entity2] leads to [Entity1, {asked.relation}, Entity2]" for body in asked.bodies
        )
        return (template.rules.format(rules=lines) + "\n" if lines else "") + _ask(template, asked.text)


def _ask(template: Template, text: str) -> str:
    return f"{template.query.format(query=text)}\n{template.answer}"


class Sampler:
    """An endless source of exercises.

    Args:
        seed: Seed of all random numbers.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"tiny {seed}")
        self._namer = Namer(self.rng)

    def exercise(
        self, *, docs: int = 10, questions: int = 6, guided: bool | None = None, hard: float = 1.0
    ) -> Exercise:
        """An exercise.

        Args:
            docs: Number of documents (with 0, the answer is a name in the question).
            questions: Maximum number of questions; the documents were "retrieved" for the first one.
            guided: Whether the questions have rules; None for a random choice.
            hard: Difficulty in [0, 1]: how often names are long, relations similar and objects repeated.
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
        crowd = rng.choice(relations) if rng.random() < 0.4 else None  # a relation with many subjects, as in retrieval
        documents: list[Doc] = []
        for _ in range(docs):
            subject = subjects[0] if rng.random() < faithful else rng.choice(cast)
            relation, object_ = rng.choice(relations), rng.choices(objects, weights)[0]
            if crowd and documents and rng.random() < 0.7:
                subject, relation = rng.choice(cast), crowd
            if object_ == subject or rng.random() < 0.18 * hard:
                subject, object_ = rng.choice([name for name in cast if name != subject]), subject
            documents.append(Doc(self._when(dated, start, 0), subject, relation, object_))
        documents = list(dict.fromkeys(documents))
        stated = [doc.relation for doc in documents if doc.subject == subjects[0]]
        main = crowd or rng.choice(stated if stated and rng.random() > 0.35 * hard else relations)
        if rng.random() < 0.7:  # in a retriever's order
            documents.sort(key=lambda doc: -(doc.relation == main) - (doc.subject == subjects[0]) - rng.random() * 1.5)
        keys = list(dict.fromkeys((doc.subject, doc.relation) for doc in documents))
        rng.shuffle(keys)
        topics = [(subjects[0], main), *((s, r) for s, r in keys if s in subjects or rng.random() < 0.3)]
        asked = [self._asked(documents, relations, topic, now, guided, hard) for topic in dict.fromkeys(topics)]
        shots = tuple(
            self._shot(dated, start) for _ in range(rng.choice((1, 2, 3)) if rng.random() < 0.06 * hard else 0)
        )
        return Exercise(shots, tuple(documents), tuple(asked[:questions]), guided)

    def _asked(
        self, docs: Sequence[Doc], relations: Sequence[str], topic: tuple[str, str], now: str, guided: bool, hard: float
    ) -> Asked:
        """A question about a subject and relation; with rules, mostly a question that needs a rule."""
        rng = self.rng
        subject, relation = topic
        bodies: list[str] = []
        if guided:
            there = [doc.relation for doc in docs if doc.subject == subject]
            if rng.random() < 0.2 + 0.45 * hard:  # no document states the new relation; the old one becomes the body
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
        """The relation, sometimes with a slightly different wording."""
        words = relation.split()
        if self.rng.random() > 0.06 or len(words) < 2:
            return relation
        at = self.rng.randrange(len(words))
        words[at : at + 1] = [words[at], self.rng.choice(ANY)] if self.rng.random() < 0.5 else [self.rng.choice(SMALL)]
        return " ".join(words)

    def _relations(self, n: int, hard: float) -> list[str]:
        """Distinct wordings; some share most of their words."""
        rng, wordings = self.rng, [self._relation()]
        while len(wordings) < n:
            words = rng.choice(wordings).split()
            if rng.random() < 0.4 * hard:
                at = rng.randrange(len(words))
                words[at : at + rng.randint(0, 1)] = [rng.choice(ANY)]
            else:
                words = self._relation().split()
            if (text := " ".join(words)) not in wordings:
                wordings.append(text)
        return wordings

    def _relation(self) -> str:
        rng = self.rng
        words = [rng.choice(rng.choice((VERBS, ANY)))]
        for _ in range(rng.choice((0, 0, 1, 1, 2, 2, 3, 4, 6))):
            words.append(rng.choice(SMALL) if rng.random() < 0.35 else rng.choice(ANY))
        text = " ".join(words)
        return text.capitalize() if rng.random() < 0.45 else text


def short_exercise(rng: random.Random) -> Exercise:
    """An exercise with names and relations of few common words, and distinct pairs of subject and relation.

    Args:
        rng: Source of randomness.
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
    by_topic: dict[tuple[str, str], Doc] = {}
    for _ in range(rng.randint(2, 10)):
        when = f"{rng.randint(1990, 2030)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" if dated else ""
        doc = Doc(when, rng.choice(subjects), rng.choice(relations), rng.choice(objects))
        by_topic.setdefault((doc.subject, doc.relation), doc)
    docs = rng.sample(list(by_topic.values()), len(by_topic))
    asked = []
    for doc in rng.sample(docs, min(len(docs), 7)):
        wanted, bodies = doc.relation, ()
        if guided and rng.random() < 0.6:  # no document states this relation, but a rule leads from this document
            wanted, bodies = relation(), (doc.relation, *rng.sample(relations, rng.random() < 0.3))
        elif guided:
            bodies = (relation(),)
        answer = answer_of(docs, doc.subject, wanted, bodies)
        asked.append(Asked(_question(dated * "2031-05-04", doc.subject, wanted), wanted, bodies, answer))
    return Exercise((), tuple(docs), tuple(asked), guided)


def answer_of(docs: Sequence[Doc], subject: str, relation: str, bodies: Sequence[str]) -> str:
    """The vote: weight 1 for a document with the question's relation; 0.8, 0.7, ... for rule bodies; 0.03 for others.

    Later documents weigh up to a quarter more; a document with the subject as object weighs a tenth. Without a document
    about the subject, the answer is the first document's object; without documents, a name in the question.
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
