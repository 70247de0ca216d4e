"""Invented names: persons, organisations with their seat, titles, places, and words that a tokenizer must split."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tiny_words import ACTIONS, GIVEN, INSTITUTIONS, ORDINARY, PLACES

from lm_eval_rag.tasks.ruleqa_demo.names import syllables

VERBS, PLAIN, BODIES, LANDS, GIVEN_NAMES = (text.split() for text in (ACTIONS, ORDINARY, INSTITUTIONS, PLACES, GIVEN))
ANY = VERBS + PLAIN + [word.lower() for word in BODIES]
SMALL = ["of", "the", "in", "to", "with", "for", "or", "and", "by", "at", "on", "from", "is", "was", "has"]
ACCENTS = str.maketrans("aeioucns", "áéíöüçñš")


class Namer:
    """A source of names.

    Args:
        rng: Source of randomness.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def some(self, n: int, hard: float) -> list[str]:
        """Distinct names; some may share a place or a word."""
        rng, names = self.rng, dict[str, None]()
        lands = [self.land() for _ in range(rng.randint(1, 4))]
        styles = rng.choices(STYLES, k=rng.randint(1, 3))
        while len(names) < n:
            short = rng.random() > hard and rng.random() < 0.8
            names[self.land() if short else rng.choice(styles)(self, lands)] = None
        return list(names)

    def land(self) -> str:
        """A place: a common, an invented or a strange word."""
        return self.rng.choice((self.rng.choice(LANDS), self.word().capitalize(), self.strange()))

    def word(self) -> str:
        """A common or an invented word."""
        return self.rng.choice(ANY) if self.rng.random() < 0.6 else syllables(self.rng, self.rng.randint(1, 3))

    def strange(self) -> str:
        """Joined pieces of words, for which the tokenizer has no single token."""
        rng = self.rng
        parts = []
        for _ in range(rng.randint(1, 4)):
            word = rng.choice(rng.choice((ANY, LANDS, GIVEN_NAMES, BODIES))).lower()
            at = rng.randrange(len(word))
            parts.append(word[at : at + rng.randint(1, 5)])
        text = "".join(parts)
        return (text.translate(ACCENTS) if rng.random() < 0.1 else text).capitalize()

    def family(self) -> str:
        """A family name."""
        rng = self.rng
        text = rng.choice(
            (self.strange, lambda: syllables(rng, rng.randint(1, 3)).capitalize(), lambda: rng.choice(GIVEN_NAMES))
        )()
        return rng.choice(("Mc", "O'", "al-", "de ", "von ", "Al-")) + text if rng.random() < 0.08 else text


def _body(s: Namer, lands: Sequence[str]) -> str:
    words = " ".join(s.rng.choice(BODIES) for _ in range(s.rng.choice((1, 1, 2))))
    if s.rng.random() < 0.3:
        words += (
            " " + s.rng.choice(("of", "for", "and")) + " " + s.rng.choice((s.rng.choice(BODIES), s.word().capitalize()))
        )
    return f"{words} ({s.rng.choice(lands)})" if s.rng.random() < 0.75 else words


def _person(s: Namer, lands: Sequence[str]) -> str:
    first = s.rng.choice(GIVEN_NAMES) if s.rng.random() < 0.6 else s.strange()
    middle = s.rng.choice(("", "", "", s.rng.choice("ABCDEFGHJKLMNPRSTVW") + ". ", s.rng.choice(GIVEN_NAMES) + " "))
    return f"{first} {middle}{s.family()}"


def _title(s: Namer, lands: Sequence[str]) -> str:
    words = [s.word() if s.rng.random() < 0.8 else s.rng.choice(SMALL) for _ in range(s.rng.randint(1, 4))]
    if s.rng.random() < 0.7:
        words = [word.capitalize() if word not in SMALL else word for word in words]
    text = " ".join(words)
    extra = s.rng.random()
    if extra < 0.12:
        text = f"{text}: {s.word().capitalize()} {s.word()}"
    elif extra < 0.24:
        text = f"{s.rng.randint(1900, 2030)} {text}"
    elif extra < 0.32:
        text = f"{text} {s.rng.randint(1, 999)}"
    elif extra < 0.4:
        text = f"The {text}"
    elif extra < 0.46:
        text = f"{text}-{s.word()}, {s.rng.choice(lands)}"
    elif extra < 0.5:
        text = f"{text} & {s.word().capitalize()}'s"
    return text


def _country(s: Namer, lands: Sequence[str]) -> str:
    return s.rng.choice((s.rng.choice(lands), s.rng.choice(LANDS), f"{s.rng.choice(PLACES_OF)} {s.rng.choice(LANDS)}"))


def _odd(s: Namer, lands: Sequence[str]) -> str:
    return " ".join(s.strange() for _ in range(s.rng.randint(1, 3)))


PLACES_OF = ["North", "South", "New", "Saint", "Lake", "Upper", "San", "United"]
STYLES = (_body, _body, _person, _title, _title, _country, _odd)
