"""Renames every entity with invented words, so that no question can be answered from a model's memory.

Each word in the entities' names is replaced by the same invented word everywhere, with the same case. Names that share
words still share words, so retrieval by words is as hard as before.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping

WORD = re.compile(r"[^\W_]+")
ONSETS = (*"bcdfghjklmnprstvwz", "br", "ch", "dr", "fl", "gl", "gr", "kl", "pl", "pr", "qu", "sk", "st", "th", "tr")
VOWELS = (*"aaeeioou", "ai", "ea", "io", "ou")
CODAS = ("", "", "", *"lmnrstx", "nd", "rk", "st")


def renamed(entities: Mapping[int, str], *, avoid: Iterable[str] = (), seed: int | str = 0) -> dict[int, str]:
    """The entities with invented names. Distinct names stay distinct, ignoring case.

    No invented word occurs in the old names or in the texts in ``avoid``.
    """
    words = sorted({word for name in entities.values() for word in _words(name)})
    generator = made_up(seed, taken={*words, *(word for text in avoid for word in _words(text))})
    new = {word: next(generator) for word in words}
    return {id: _rename(name, new, generator) for id, name in entities.items()}


def made_up(seed: int | str, taken: set[str]) -> Iterator[str]:
    """An endless stream of distinct lower-case words of two or three syllables, none of them in ``taken``."""
    rng, seen = random.Random(seed), set(taken)
    while True:
        syllables = (rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(rng.choice((2, 2, 3))))
        word = "".join(syllables) + rng.choice(CODAS)
        if word not in seen:
            seen.add(word)
            yield word


def _words(name: str) -> list[str]:
    return WORD.findall(name.casefold())


def _rename(name: str, new: Mapping[str, str], generator: Iterator[str]) -> str:
    if not WORD.search(name):  # a name of punctuation only, such as !!!
        return next(generator).capitalize()

    def swap(match: re.Match[str]) -> str:
        parts = [new[part] for part in _words(match.group())]  # casefold may split a letter, as in the Turkish dotted I
        word = "".join(parts)
        return word.capitalize() if match.group()[0].isupper() or match.group()[0].isdigit() else word

    return WORD.sub(swap, name)
