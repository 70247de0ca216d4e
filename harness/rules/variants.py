"""Variants of a question, for the control with an equal number of retrieval calls and no rules.

They use the words alone, with no knowledge of entities or relations. In most questions one half of the words names the
entity and the other half the relation, so the variants repeat one half, or keep one half alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lm_eval_rag.harness.common.errors import UserError, at_least

FORM = re.compile(r"^(?:Time \S+ )?what does (.+) \?$")


def _first_half(text: str) -> str:
    words = _words(text)
    return " ".join(words[: (len(words) + 1) // 2])


def _second_half(text: str) -> str:
    words = _words(text)
    return " ".join(words[(len(words) + 1) // 2 :])


def _words(text: str) -> list[str]:
    """The words of a question, without the frame of the benchmark's form."""
    form = FORM.match(text)
    return (form[1] if form else text).split()


VARIANTS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"{text} {_first_half(text)}",
    lambda text: f"{text} {_second_half(text)}".strip(),
    _first_half,
    lambda text: _second_half(text) or text,
    lambda text: " ".join(_words(text)),
)


def variants(text: str, n: int) -> tuple[str, ...]:
    """The first ``n`` variants of a question.

    In this order: the question itself; with its first half repeated; with its second half repeated; the first half
    alone; the second half alone; the question without its time and frame.

    Raises:
        UserError: n is below 1, or above the number of variants.
    """
    if at_least("number of query variants", n) > len(VARIANTS):
        raise UserError(f"{n} query variants are not available: give a number from 1 to {len(VARIANTS)}.")
    return tuple(variant(text) for variant in VARIANTS[:n])
