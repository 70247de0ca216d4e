"""Looks for gold in a corpus: questions copied into passages, ids of questions, records of datasets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

WORDS = 5  # shorter questions are not looked for: they may stand in any text
ID = re.compile(r"(?=\w*\d)(?=\w*[a-z_])\w{8,}", re.IGNORECASE)  # numbers alone may stand in any text
MARKS = ('"supporting_facts"', '"golden_answers"', '"answer_aliases"', '"question":', '"gold_answer"')
MOST = 1_000_000  # passages that are looked at; of a larger corpus every n-th
SEARCHED, SHORT = "passages searched", f"questions of fewer than {WORDS} words, not searched for"
LEAKS = (
    "passages with a whole question",
    "passages with the id of a question",
    "passages that look like a dataset's record",
)
_WORD = re.compile(r"\w+")


class LeakCheck:
    """Counts passages with gold, in time that is linear in their text.

    Args:
        questions: (id, text) of every question.
        size: Number of passages of the corpus.
    """

    def __init__(self, questions: Iterable[tuple[str, str]], size: int) -> None:
        self._questions: set[tuple[str, ...]] = set()
        self._lengths: dict[tuple[str, ...], set[int]] = defaultdict(set)  # of the questions that begin so
        self._ids: set[str] = set()
        self._step = max(1, -(-size // MOST))
        self._row = 0
        self._examples: dict[str, str] = {}
        self.counts = {SEARCHED: 0, SHORT: 0, **dict.fromkeys(LEAKS, 0)}
        for id, text in questions:
            words = tuple(_WORD.findall(text.lower()))
            self.counts[SHORT] += len(words) < WORDS
            if len(words) >= WORDS:
                self._questions.add(words)
                self._lengths[words[:WORDS]].add(len(words))
            if ID.fullmatch(id):
                self._ids.add(id)

    def look(self, id: str, text: str) -> None:
        """Look at the next passage."""
        self._row += 1
        if (self._row - 1) % self._step:
            return
        self.counts[SEARCHED] += 1
        found = (self._has_question(text), self._has_id(text), any(mark in text for mark in MARKS))
        for name in (name for name, hit in zip(LEAKS, found, strict=True) if hit):
            self.counts[name] += 1
            self._examples.setdefault(name, id)

    def leaks(self) -> Iterator[str]:
        """What was found, each kind with its number and the first passage."""
        for name, example in self._examples.items():
            yield f"{name}: {self.counts[name]:,}, such as {example!r}"

    def _has_question(self, text: str) -> bool:
        words = tuple(_WORD.findall(text.lower()))
        starts = zip(*(words[shift:] for shift in range(WORDS)), strict=False)
        return any(
            words[start : start + length] in self._questions
            for start, begin in enumerate(starts)
            if begin in self._lengths
            for length in self._lengths[begin]
        )

    def _has_id(self, text: str) -> bool:
        return bool(self._ids) and not self._ids.isdisjoint(_WORD.findall(text))
