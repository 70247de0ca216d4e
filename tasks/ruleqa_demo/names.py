"""Invented names: seeded syllables that read like words, unique within a world, without real persons or places."""

from __future__ import annotations

import random
from collections.abc import Callable

ONSETS, VOWELS, CODAS, PLACE_ENDINGS = map(
    str.split,
    (
        "b br c ch d dr f fl g gr h j k kr l m n p pl qu r s sh sk sl st t th tr v vr w y z",
        "a e i o u ai ea io ou ei",
        "l n r s m th nd rk st x ng lt",
        "ia or stead mere holm ast una eth ova wick dal esk",
    ),
)
BODIES = (
    "Guild of Weavers",
    "Harbour Board",
    "Ministry of Roads",
    "Ministry of Grain",
    "Observatory",
    "Police",
    "Printing House",
    "Rail Company",
    "School of Medicine",
    "Senate",
    "Shipyard",
    "Society of Letters",
    "Trade Council",
    "University",
    "Water Office",
)


def syllables(rng: random.Random, count: int) -> str:
    """A lower-case word of ``count`` syllables."""
    return "".join(
        rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(("", rng.choice(CODAS), "")) for _ in range(count)
    )


Draw = Callable[[], str]


class Names:
    """A source of distinct names.

    Args:
        rng: Source of randomness.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def person(self) -> str:
        """First and family name."""
        return self._fresh(lambda: f"{self._word(2)} {self._word(self._rng.choice((2, 2, 3)))}")

    def place(self) -> str:
        """One word."""
        return self._fresh(lambda: (syllables(self._rng, 1) + self._rng.choice(PLACE_ENDINGS)).capitalize())

    def organisation(self, place: str) -> str:
        """An organisation with its seat, as in event data: ``Senate (Korvast)``."""
        return self._fresh(lambda: f"{self._rng.choice(BODIES)} ({place})")

    def _word(self, count: int) -> str:
        return syllables(self._rng, count).capitalize()

    def _fresh(self, draw: Draw) -> str:
        name = draw()
        while name in self._used:
            name = draw()
        self._used.add(name)
        return name
