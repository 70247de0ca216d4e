"""Made-up names: every entity renamed, so that nothing can be answered from memory.

Each word of the entities' names gets one made-up word, the same wherever it stands, in the same case: names that share
words still do, so that retrieval by words is as hard as before and only memory is lost.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping

WORD = re.compile(r"[^\W_]+")
ONSETS = (*"bcdfghjklmnprstvwz", "br", "ch", "dr", "fl", "gl", "gr", "kl", "pl", "pr", "qu", "sk", "st", "th", "tr")
VOWELS = (*"aaeeioou", "ai", "ea", "io", "ou")
CODAS = ("", "", "", *"lmnrstx", "nd", "rk", "st")


def renamed(entities: Mapping[int, str], *, avoid: Iterable[str] = (), seed: int = 0) -> dict[int, str]:
    """The entities under made-up names, no two alike where no two were, without regard to case.

    No made-up word is a word of the old names or of the texts in ``avoid``.
    """
    words = sorted({word for name in entities.values() for word in _words(name)})
    generator = made_up(seed, taken={*words, *(word for text in avoid for word in _words(text))})
    new = {word: next(generator) for word in words}
    return {id: _rename(name, new, generator) for id, name in entities.items()}


def made_up(seed: int, taken: set[str]) -> Iterator[str]:
    """Endless lower-case words of two or three syllables, none twice and none in ``taken``."""
    lot, seen = random.Random(seed), set(taken)
    while True:
        syllables = (lot.choice(ONSETS) + lot.choice(VOWELS) for _ in range(lot.choice((2, 2, 3))))
        word = "".join(syllables) + lot.choice(CODAS)
        if word not in seen:
            seen.add(word)
            yield word


def _words(name: str) -> list[str]:
    return WORD.findall(name.casefold())


def _rename(name: str, new: Mapping[str, str], generator: Iterator[str]) -> str:
    if not WORD.search(name):  # a name of signs alone, such as !!!
        return next(generator).capitalize()

    def swap(match: re.Match[str]) -> str:
        parts = [new[part] for part in _words(match.group())]  # casefold may split a letter, as in the Turkish dotted I
        word = "".join(parts)
        return word.capitalize() if match.group()[0].isupper() or match.group()[0].isdigit() else word

    return WORD.sub(swap, name)
