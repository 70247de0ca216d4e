"""Which entity and which relation a question is about, from its words alone.

A question in the benchmark's form ("Time {date} what does {subject} {relation} ?", the time left out on static graphs)
is split into a known entity and a known relation, or a wording that the documents use for one. Of several splits the
one with the longest relation counts; a split whose first half is no known entity counts only when none is better, since
a question may name an entity that no document does.

Any other question is about the longest entity that it mentions, and the relation whose name or wording shares most with
its other words: the largest Dice coefficient over their first five letters, weighted by rarity among the relations
(ties by name). Without a word in common the relation is unknown.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from lm_eval_rag.harness.retrieval.bm25 import tokenize

FORM = re.compile(r"^(?:Time \S+ )?what does (.+) \?$")
STEM = 5  # letters


@dataclass(frozen=True, slots=True)
class Recognition:
    """What a question is about; None where it could not be told."""

    subject: str | None
    relation: str | None


class Recogniser:
    """Splits questions into what it knows.

    Args:
        entities: Names.
        relations: Names.
        wordings: Other ways to say a relation -> its name.
    """

    def __init__(self, entities: Iterable[str], relations: Iterable[str], wordings: Mapping[str, str]) -> None:
        self._entities = frozenset(entities)
        self._phrases = {**wordings, **{name: name for name in relations}}

    def recognise(self, text: str) -> Recognition:
        """The subject and the relation of a question."""
        form = FORM.match(text)
        return (form and self._split(form[1])) or self._guess(text)

    def _split(self, words: str) -> Recognition | None:
        stranger: Recognition | None = None
        cut = words.find(" ")
        while cut > 0:
            subject, relation = words[:cut], self._phrases.get(words[cut + 1 :])
            if relation is not None and subject in self._entities:
                return Recognition(subject, relation)
            if relation is not None and stranger is None:
                stranger = Recognition(subject, relation)
            cut = words.find(" ", cut + 1)
        return stranger

    def _guess(self, text: str) -> Recognition:
        tokens = tokenize(text)
        spans, longest = self._entity_index
        mentioned, begin, end = None, 0, 0
        for length in range(min(longest, len(tokens)), 0, -1):
            starts = range(len(tokens) - length + 1)
            begin = next((i for i in starts if " ".join(tokens[i : i + length]) in spans), -1)
            if begin >= 0:
                end = begin + length
                mentioned = spans[" ".join(tokens[begin:end])]
                break
        rest = tokens[:begin] + tokens[end:] if mentioned is not None else tokens
        return Recognition(mentioned, self._nearest(rest))

    def _nearest(self, tokens: list[str]) -> str | None:
        holders, weights, sizes = self._phrase_index
        stems = {token[:STEM] for token in tokens} & holders.keys()
        shared: Counter[str] = Counter()
        for stem in sorted(stems):
            for phrase in holders[stem]:
                shared[phrase] += weights[stem]  # type: ignore[assignment]
        size = sum(weights[stem] for stem in sorted(stems))
        scores = {phrase: 2 * value / (size + sizes[phrase]) for phrase, value in shared.items()}
        best = min(scores, key=lambda phrase: (-scores[phrase], self._phrases[phrase], phrase), default=None)
        return None if best is None else self._phrases[best]

    @cached_property
    def _entity_index(self) -> tuple[dict[str, str], int]:
        """Tokens of each entity, joined -> its name (of two names with the same tokens the first), and the most."""
        spans: dict[str, str] = {}
        for name in sorted(self._entities):
            spans.setdefault(" ".join(tokenize(name)), name)
        spans.pop("", None)
        return spans, max((key.count(" ") + 1 for key in spans), default=0)

    @cached_property
    def _phrase_index(self) -> tuple[dict[str, list[str]], dict[str, float], dict[str, float]]:
        """Phrases by stem, the weight of each stem, and the summed weights of each phrase."""
        holders: dict[str, list[str]] = defaultdict(list)
        stems = {phrase: sorted({token[:STEM] for token in tokenize(phrase)}) for phrase in sorted(self._phrases)}
        for phrase, own in stems.items():
            for stem in own:
                holders[stem].append(phrase)
        weights = {stem: math.log(1 + len(stems) / len(phrases)) for stem, phrases in holders.items()}
        return dict(holders), weights, {phrase: sum(weights[stem] for stem in own) for phrase, own in stems.items()}
