"""The normal form in which answers, gold answers and documents are compared.

SQuAD's normalisation (arXiv:1606.05250, official evaluation script: lower case, no punctuation, no articles, single
spaces), with these changes for names of entities:

- Unicode: NFKC and casefold first; punctuation of every script is removed, not only ASCII. Accents and vowel signs
  stay.
- Full stops and apostrophes are deleted ("U.S." is "US"; as in SQuAD, "3.5" is "35"). Other punctuation and symbols
  separate words: "Citizen (Nigeria)", "Citizen(Nigeria)" and "citizen_nigeria" are equal (SQuAD would join the words
  of "Mining/Energy").
- No text becomes empty: a text of articles keeps them, a text of punctuation is unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ARTICLES = frozenset({"a", "an", "the"})
DELETED = frozenset(".'’‘ʼ`´")


class _Punctuation(dict[int, int | str | None]):
    """A table for ``str.translate`` that caches each character. None deletes one, which keeps ASCII texts fast."""

    def __missing__(self, code: int) -> int | str | None:
        category = unicodedata.category(chr(code))
        if chr(code) in DELETED or category == "Cf":  # Cf: soft hyphens, joiners, direction marks
            self[code] = None
        elif category[0] in "PSZ" or category == "Cc":
            self[code] = " "
        else:
            self[code] = code
        return self[code]


_TABLE = _Punctuation()


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """The normal form: lower-case words separated by single spaces; "" only for a blank text. Idempotent."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _composed(folded.translate(_TABLE)).split()
    return " ".join([word for word in words if word not in ARTICLES] or words or _composed(folded).split())


def _composed(text: str) -> str:
    """NFKC again: casefold may decompose characters, and a deleted character may have separated two that combine."""
    return unicodedata.normalize("NFKC", text)


def count_words(text: str) -> int:
    """Number of words and signs, at least 1: the unit of our perplexities, which is the same for every model."""
    return max(1, len(re.findall(r"\w+|[^\w\s]", text)))


def has_words(text: str, phrase: str) -> bool:
    """Whether ``text`` contains ``phrase`` as whole words; both in normal form; False for a blank phrase."""
    return bool(phrase) and f" {phrase} " in f" {text} "
