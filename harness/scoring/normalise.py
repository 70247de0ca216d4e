"""The one normal form in which answers, gold answers and documents are compared.

SQuAD's normalisation (arXiv:1606.05250, official evaluation script: lower case, no punctuation, no articles, single
spaces), with the departures that names of entities ask for:

- Unicode first: NFKC and casefold, and punctuation of every script, not of ASCII alone. Accents and vowel signs stay.
- Full stops and apostrophes vanish ("U.S." is "US"; as in SQuAD, "3.5" is "35"); other punctuation and symbols part
  words ("Citizen (Nigeria)", "Citizen(Nigeria)" and "citizen_nigeria" are one; SQuAD would glue "Mining/Energy").
- Nothing is emptied: a text of articles only keeps them, a text of punctuation only stays as it is.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

ARTICLES = frozenset({"a", "an", "the"})
VANISHING = frozenset(".'’‘ʼ`´")


class _Punctuation(dict[int, int | str]):
    """A table for ``str.translate`` that looks a character up once."""

    def __missing__(self, code: int) -> int | str:
        category = unicodedata.category(chr(code))
        if chr(code) in VANISHING or category == "Cf":  # Cf: soft hyphens, joiners, direction marks
            self[code] = ""
        elif category[0] in "PSZ" or category == "Cc":
            self[code] = " "
        else:
            self[code] = code
        return self[code]


_TABLE = _Punctuation()


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """The normal form: lower-case words parted by single spaces; "" only for a blank text. Idempotent."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _composed(folded.translate(_TABLE)).split()
    return " ".join([word for word in words if word not in ARTICLES] or words or _composed(folded).split())


def _composed(text: str) -> str:
    """NFKC once more: casefold takes characters apart, and what vanished may have kept some from joining."""
    return unicodedata.normalize("NFKC", text)


def has_words(text: str, phrase: str) -> bool:
    """Whether ``phrase`` stands in ``text`` as whole words; both in normal form; a blank phrase never does."""
    return bool(phrase) and f" {phrase} " in f" {text} "
