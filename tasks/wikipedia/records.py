"""What the readers of all datasets return: questions, and passages with numbered sentences; and how both are checked.

The text of a passage is its title, a line break, and its sentences. Its id is the source's own id, or else its title;
gold evidence names passages so. Nothing is dropped in silence: every correction is counted by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain

LONG = 1_000_000  # characters; longer passages are kept whole and counted

Fact = tuple[str, int]  # passage, index of a sentence from 0


@dataclass(frozen=True, slots=True)
class Page:
    """A passage.

    Args:
        title: Its title; "" for none.
        sentences: Its text in sentences, so that supporting facts can name them.
        id: The source's own id; "" takes the title.
        whole: Whether the source does not split the passage into sentences.
    """

    title: str
    sentences: tuple[str, ...]
    id: str = ""
    whole: bool = False

    @property
    def name(self) -> str:
        """The id, or else the title, or else the beginning of the text."""
        return self.id or self.title or self.body[:60]

    @property
    def body(self) -> str:
        """The sentences as one text, with a space between two if there is none."""
        parts = [s if not i or s[:1].isspace() else f" {s}" for i, s in enumerate(filter(None, self.sentences))]
        return "".join(parts).strip()

    @property
    def text(self) -> str:
        """Title, line break, sentences: what is indexed and shown."""
        return f"{self.title}\n{self.body}" if self.title else self.body


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what its dataset says of its answer.

    Args:
        id: Unique in its dataset.
        text: The question, or the claim.
        answers: Gold answers and aliases, the first being the main one; for a claim, its label.
        type: The dataset's own kind of question, or None.
        facts: Supporting facts; None if the data have none.
        evidence_sets: FEVER's sets of sentences; None if the data have none.
        triples: Facts (subject, relation, object) that lead to the answer; None if the data have none.
        gold: The passages that are needed, by id or by whole text; None if they are unknown.
        context: The passages that come with the question, in the dataset's order.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    type: str | None = None
    facts: tuple[Fact, ...] | None = None
    evidence_sets: tuple[tuple[Fact, ...], ...] | None = None
    triples: tuple[tuple[str, str, str], ...] | None = None
    gold: tuple[str, ...] | None = None
    context: tuple[Page, ...] = ()

    @property
    def evidence(self) -> tuple[Fact, ...]:
        """Every fact that the gold evidence names, once."""
        return tuple(dict.fromkeys((*(self.facts or ()), *chain.from_iterable(self.evidence_sets or ()))))


def checked_questions(questions: Iterable[Question], notes: Counter[str]) -> Iterator[Question]:
    """The questions with ids made unique; ``notes`` counts what was found.

    A repeated item is dropped if it is identical. If only its id is repeated, it gets a suffix. A question without a
    gold answer stays and is unscored.
    """
    seen: dict[str, Question] = {}
    for question in questions:
        first = seen.get(question.id)
        if first == question:
            notes["repeated question"] += 1
            continue
        if first is not None:
            notes["id of several questions"] += 1
            number = 2
            while f"{question.id}-{number}" in seen:
                number += 1
            question = replace(question, id=f"{question.id}-{number}")
        seen[question.id] = question
        notes["question without a gold answer"] += not question.answers
        yield question


class UniquePages:
    """Gives passages unique ids and drops repetitions.

    Args:
        notes: Counts what was found: repeated and empty passages, titles of several passages, very long passages.
    """

    def __init__(self, notes: Counter[str]) -> None:
        self.notes = notes
        self.size = 0
        self._rows: dict[int, int] = {}  # hash of a name and text -> row
        self._names: Counter[int] = Counter()  # hash of a name -> passages with this name

    def add(self, page: Page) -> tuple[int | None, str | None]:
        """(row, id) of a new passage; (row, None) of one that is known; (None, None) of one without text."""
        if not page.body:
            self.notes["empty passage"] += 1
            return None, None
        name, text = page.name, page.text
        key = _hash(f"{name}\n\n{text}")
        if key in self._rows:
            self.notes["repeated passage"] += 1
            return self._rows[key], None
        self.notes["passage of more than a million characters"] += len(text) > LONG
        self._rows[key] = row = self.size
        self.size += 1
        self._names[_hash(name)] += 1
        number = self._names[_hash(name)]
        if number > 1:
            self.notes["id of several passages"] += 1
        return row, name if number == 1 else f"{name}#{number}"  # no title of Wikipedia has a "#"


def _hash(text: str) -> int:
    """64 bits: small enough for the keys of 21 million passages."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
