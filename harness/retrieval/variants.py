"""Variants of a question, for the control that retrieves as often as rules do, but without them."""

from __future__ import annotations

import re
from collections.abc import Callable

from lm_eval_rag.harness.errors import UserError, at_least

TIME = re.compile(r"\bTime (\S+)")
FRAME = re.compile(r"\bwhat does (.+) \?$")


def _words(text: str) -> list[str]:
    """The words between the frame of a question in the benchmark's form; of another question all words."""
    form = FRAME.search(text)
    return (form[1] if form else text).split()


def _content(text: str) -> str:
    return " ".join(_words(text))


def _timeless(text: str) -> str:
    return TIME.sub("", text).strip()


VARIANTS: tuple[Callable[[str], str], ...] = ()


def variants(text: str, n: int) -> tuple[str, ...]:
    return (text,) * n
