"""Features of a text for the static towers: words, pairs of words, beginnings, and the date.

The date ("Time 2014-11-18 ...") is removed first, and from a question also the frame of the benchmark's form. Words are
lowercased runs of letters, digits and underscores. The features are the words, the pairs of neighbours, and the
beginnings of up to six words, which distinguish the subject of a document from its object. Every feature is a 64-bit
hash of its letters, so no vocabulary is stored.

A query with a rule has segments, which the query tower weights and embeds separately (as BERT does its segments): the
question, the rule's body, the rule's head, and the end of the question if it repeats the head.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np

WORD = re.compile(r"\w+")
DATED = re.compile(r"^Time (\d{4})(?:-(\d\d)-(\d\d))? ")
FORM = re.compile(r"^what does | \?$")
RULE = re.compile(r"^(.*) \[Entity1, (.*), Entity2\] leads to \[Entity1, (.*), Entity2\]$", re.DOTALL)
BEGINNINGS = 6  # words of the longest beginning
KINDS = 2 + BEGINNINGS  # words, pairs, beginnings of 1 to 6 words
SEGMENTS = ("question", "guided", "body", "head", "asked")
# question: a query without a rule. In a query with a rule: guided is the question before the head, mostly the subject;
# body is read as if it followed the subject; head; asked is the head in the question.
GROUPS = KINDS * len(SEGMENTS)
_ONE, _TWO, _THREE = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class Features:
    """Features of several texts, ordered by text.

    Args:
        texts: int64 (F,): the text of each feature, ascending.
        keys: uint64 (F,): the hash of each feature, the same in every segment.
        groups: int64 (F,): segment * ``KINDS`` + kind, in [0, GROUPS).
        days: float64 (texts,): days from 1970 to the text's date; NaN without one.
    """

    texts: Any
    keys: Any
    groups: Any
    days: Any

    @property
    def tagged(self) -> Any:
        """uint64 (F,): keys that differ between segments, so that a feature is trained separately in each."""
        return mixed(self.keys + (self.groups // KINDS).astype(np.uint64))


def document_features(texts: Sequence[str]) -> Features:
    """The features of documents; all are in the first segment."""
    dated = [_dated(text) for text in texts]
    words = [[[(word, 0) for word in WORD.findall(rest.lower())]] for _, rest in dated]
    return _features(words, [days for days, _ in dated])


def query_features(texts: Sequence[str]) -> Features:
    """The features of queries, with or without a rule."""
    dated = [_dated(text) for text in texts]
    return _features([_segments(rest) for _, rest in dated], [days for days, _ in dated])


def mixed(keys: Any) -> Any:
    """Well-mixed uint64 of uint64 (the finaliser of splitmix64; Steele, Lea and Flood, OOPSLA 2014)."""
    keys = keys + _ONE
    keys = (keys ^ (keys >> np.uint64(30))) * _TWO
    keys = (keys ^ (keys >> np.uint64(27))) * _THREE
    return keys ^ (keys >> np.uint64(31))


def _dated(text: str) -> tuple[float, str]:
    """Days from 1970 to the date at the start of the text (the middle of a year), and the rest of the text."""
    match = DATED.match(text)
    if not match:
        return np.nan, text
    year, month, day = (int(part) if part else None for part in match.groups())
    try:
        day_of_text = date(year or 1, month or 7, day or 1)
    except ValueError:  # not a date, so these are words
        return np.nan, text
    return float((day_of_text - date(1970, 1, 1)).days), text[match.end() :]


def _segments(text: str) -> list[list[tuple[str, int]]]:
    """Sequences of (word, segment) of a query without its date; the first has the form of a document."""
    match = RULE.match(text)
    if not match:
        return [[(word, 0) for word in WORD.findall(FORM.sub("", text).lower())]]
    question, body, head = (WORD.findall(FORM.sub("", part).lower()) for part in match.groups())
    asked: list[str] = []
    if head and question[-len(head) :] == head:
        question, asked = question[: -len(head)], head
    document = [(word, 1) for word in question] + [(word, 2) for word in body]
    return [document, [(word, 3) for word in head], [(word, 4) for word in asked]]


def _features(sequences: Sequence[Sequence[Sequence[tuple[str, int]]]], days: Sequence[float]) -> Features:
    flat = [(text, first, words) for text, parts in enumerate(sequences) for first, words in enumerate(parts) if words]
    lengths = np.array([len(words) for _, _, words in flat], np.int64)
    hashes = np.array([_hashed(word) for _, _, words in flat for word, _ in words], np.uint64)
    segment = np.array([number for _, _, words in flat for _, number in words], np.int64)
    text, sequence = (np.repeat(np.array([row[i] for row in flat], np.int64), lengths) for i in (0, 1))
    place = np.arange(len(hashes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # of a word in its sequence
    features = [(np.arange(len(hashes)), hashes, np.zeros(len(hashes), np.int64))]
    later = np.flatnonzero(place > 0)
    features.append((later, mixed(hashes[later - 1]) ^ hashes[later], np.ones(len(later), np.int64)))
    beginnings = mixed(~hashes)
    for length in range(1, BEGINNINGS + 1):
        ends = np.flatnonzero((place == length - 1) & (sequence == 0))
        if length > 1:
            beginnings[ends] = mixed(beginnings[ends - 1]) ^ hashes[ends]
        features.append((ends, beginnings[ends], np.full(len(ends), length + 1, np.int64)))
    words, keys, kinds = (np.concatenate(parts) for parts in zip(*features, strict=True))
    order = np.lexsort((kinds, words))
    words, keys, kinds = words[order], keys[order], kinds[order]
    return Features(text[words], keys, segment[words] * KINDS + kinds, np.array(days, np.float64))


@cache
def _hashed(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
