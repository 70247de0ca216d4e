"""Looks for gold in a corpus: questions copied into passages, ids of questions, records of datasets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

WORDS = 5  # shorter questions are not looked for: they may stand in any text
ID = re.compile(r"(?=\w*\d)(?=\w*[a-z_])\w{8,}", re.IGNORECASE)  # numbers alone may stand in any text
MARKS = ('"supporting_facts"', '"golden_answers"', '"answer_aliases"', '"question":', '"gold_answer"')
MOST = 1_000_000  # passages that are looked at; of a larger corpus every n-th
_WORD = re.compile(r"\w+")


class LeakCheck:
    """Counts passages with gold.

    Args:
        questions: (id, text) of every question.
        size: Number of passages of the corpus.
    """

    def __init__(self, questions: Iterable[tuple[str, str]], size: int) -> None:
        self._begins: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
        self._ids: set[str] = set()
        for id, text in questions:
            words = tuple(_WORD.findall(text.lower()))
            if len(words) >= WORDS:
                self._begins[words[:WORDS]].add(words)
            if ID.fullmatch(id):
                self._ids.add(id)
        self._step = max(1, -(-size // MOST))
        self._row = 0
        self.counts = {
            "passages searched": 0,
            "passages with a whole question": 0,
            "passages with the id of a question": 0,
            "passages that look like a dataset's record": 0,
        }

    def look(self, text: str) -> None:
        """Look at the next passage."""
        self._row += 1
        if (self._row - 1) % self._step:
            return
        found = (True, self._has_question(text), self._has_id(text), any(mark in text for mark in MARKS))
        for name, hit in zip(self.counts, found, strict=True):
            self.counts[name] += hit

    def _has_question(self, text: str) -> bool:
        words = tuple(_WORD.findall(text.lower()))
        for start in range(len(words) - WORDS + 1):
            for question in self._begins.get(words[start : start + WORDS], ()):
                if words[start : start + len(question)] == question:
                    return True
        return False

    def _has_id(self, text: str) -> bool:
        return bool(self._ids) and any(word in self._ids for word in ID.findall(text))
