"""Recognises the entity and the relation of a question from its words alone.

A question in the benchmark's form ("Time {date} what does {subject} {relation} ?", without the time on static graphs)
is split into a known entity and a known relation, or a wording that the documents use for a relation. Of several splits
the one with the longest relation is used. A split with an unknown entity is used only if there is no other, since a
question may name an entity that is in no document.

If the corpus has forms of questions ("Whom did {subject} consult on {time}?"), a question in one of these forms is
about the relation of the form. Of several readings one with a known entity is used, and of these the one with the
shortest entity.

For any other question, the entity is the longest one that it mentions. The relation is the one whose name or wording is
most similar to the other words: the largest Dice coefficient over the first five letters of the words, weighted by
their rarity among the relations (ties by name). If no word is shared, the relation is unknown.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from lm_eval_rag.harness.data.question_forms import FormReader
from lm_eval_rag.harness.retrieval.tokens import tokenize

FORM = re.compile(r"^(?:Time \S+ )?what does (.+) \?$")
STEM = 5  # letters


class Recognition(NamedTuple):
    """What a question is about; None where that is unknown."""

    subject: str | None
    relation: str | None


class Recogniser:
    """Recognises the entities and relations of one corpus.

    Args:
        entities: Names.
        relations: Names.
        wordings: Other wordings of relations -> the relation's name.
        forms: Relation -> form of its questions.
    """

    def __init__(
        self,
        entities: Iterable[str],
        relations: Iterable[str],
        wordings: Mapping[str, str],
        forms: Mapping[str, str] | None = None,
    ) -> None:
        self._entities = frozenset(entities)
        self._phrases = {**wordings, **{name: name for name in relations}}
        self._forms = FormReader(forms or {})

    def recognise(self, text: str) -> Recognition:
        """The subject and the relation of a question."""
        form = FORM.match(text)
        return (form and self._split(form[1])) or self._read(text) or self._guess(text)

    def _split(self, words: str) -> Recognition | None:
        unknown_subject: Recognition | None = None
        cut = words.find(" ")
        while cut > 0:
            subject, relation = words[:cut], self._phrases.get(words[cut + 1 :])
            if relation is not None and subject in self._entities:
                return Recognition(subject, relation)
            if relation is not None and unknown_subject is None:
                unknown_subject = Recognition(subject, relation)
            cut = words.find(" ", cut + 1)
        return unknown_subject

    def _read(self, text: str) -> Recognition | None:
        readings = self._forms.read(text)
        known = [reading for reading in readings if reading[0] in self._entities]
        best = min(known or readings, key=lambda reading: (len(reading[0]), *reading), default=None)
        return None if best is None else Recognition(*best)

    def _guess(self, text: str) -> Recognition:
        tokens = tokenize(text)
        names, longest = self._entity_index
        mentioned, begin, end = None, 0, 0
        for length in range(min(longest, len(tokens)), 0, -1):
            starts = range(len(tokens) - length + 1)
            begin = next((i for i in starts if " ".join(tokens[i : i + length]) in names), -1)
            if begin >= 0:
                end = begin + length
                mentioned = names[" ".join(tokens[begin:end])]
                break
        other = tokens[:begin] + tokens[end:] if mentioned is not None else tokens
        return Recognition(mentioned, self._nearest(other))

    def _nearest(self, tokens: list[str]) -> str | None:
        phrases, weights, sizes = self._phrase_index
        stems = {token[:STEM] for token in tokens} & phrases.keys()
        shared: Counter[str] = Counter()
        for stem in sorted(stems):
            for phrase in phrases[stem]:
                shared[phrase] += weights[stem]  # type: ignore[assignment]
        size = sum(weights[stem] for stem in sorted(stems))
        scores = {phrase: 2 * value / (size + sizes[phrase]) for phrase, value in shared.items()}
        best = min(scores, key=lambda phrase: (-scores[phrase], self._phrases[phrase], phrase), default=None)
        return None if best is None else self._phrases[best]

    @cached_property
    def _entity_index(self) -> tuple[dict[str, str], int]:
        """Joined tokens -> name (the first name with these tokens), and the number of tokens of the longest entity."""
        names: dict[str, str] = {}
        for name in sorted(self._entities):
            names.setdefault(" ".join(tokenize(name)), name)
        names.pop("", None)
        return names, max((key.count(" ") + 1 for key in names), default=0)

    @cached_property
    def _phrase_index(self) -> tuple[dict[str, list[str]], dict[str, float], dict[str, float]]:
        """Phrases by stem, the weight of each stem, and the sum of weights of each phrase."""
        phrases: dict[str, list[str]] = defaultdict(list)
        stems = {phrase: sorted({token[:STEM] for token in tokenize(phrase)}) for phrase in sorted(self._phrases)}
        for phrase, phrase_stems in stems.items():
            for stem in phrase_stems:
                phrases[stem].append(phrase)
        weights = {stem: math.log(1 + len(stems) / len(with_stem)) for stem, with_stem in phrases.items()}
        sizes = {phrase: sum(weights[stem] for stem in phrase_stems) for phrase, phrase_stems in stems.items()}
        return dict(phrases), weights, sizes
