"""Variants of a question, for the control that retrieves as often as rules do, but without them.

They are made from the words alone, with no knowledge of entities or relations: in a question one half of the words
tends to name the entity and the other the relation, so each variant stresses, keeps or drops one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lm_eval_rag.harness.common.errors import UserError, at_least

FORM = re.compile(r"^(?:Time \S+ )?what does (.+) \?$")


def _first(text: str) -> str:
    words = _words(text)
    return " ".join(words[: (len(words) + 1) // 2])


def _last(text: str) -> str:
    words = _words(text)
    return " ".join(words[(len(words) + 1) // 2 :])


def _words(text: str) -> list[str]:
    """The words without the frame of the benchmark's form; all words of any other question."""
    form = FORM.match(text)
    return (form[1] if form else text).split()


VARIANTS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"{text} {_first(text)}",
    lambda text: f"{text} {_last(text)}".strip(),
    _first,
    lambda text: _last(text) or text,
    lambda text: " ".join(_words(text)),
)


def variants(text: str, n: int) -> tuple[str, ...]:
    """The first ``n`` variants of a question: itself, then with its first and with its last words twice, then these
    first and last words alone, then without the time and the question's frame.

    Raises:
        UserError: n is below 1, or there are fewer variants.
    """
    if at_least("number of query variants", n) > len(VARIANTS):
        raise UserError(f"{n} query variants are not to be had: give a number from 1 to {len(VARIANTS)}.")
    return tuple(make(text) for make in VARIANTS[:n])
