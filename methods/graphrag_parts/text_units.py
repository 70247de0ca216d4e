"""Text units: the chunks of passages that entities are extracted from (section 3.1.1). A token is a word or a sign."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.harness.web.chunking import pieces
from lm_eval_rag.methods.graphrag_parts.records import Unit

T = TypeVar("T")


def units_of(passages: Iterable[Passage], tokens: int, overlap: int) -> list[Unit]:
    """The text units of passages; none holds text of two.

    Raises:
        UserError: Units would overlap by all their tokens.
    """
    if overlap >= tokens:
        raise UserError(f"chunk_overlap={overlap} is not allowed: give less than chunk_tokens={tokens}.")
    units: list[Unit] = []
    for passage in passages:
        for text in pieces(passage.text, tokens, overlap):
            units.append(Unit(f"U{len(units)}", text, passage.id))
    return units


def within(texts: Sequence[tuple[T, str]], tokens: int) -> list[T]:
    """The first items whose texts have at most ``tokens`` tokens together; it ends with the first that does not fit."""
    taken: list[T] = []
    for item, text in texts:
        tokens -= count_words(text)
        if tokens < 0:
            break
        taken.append(item)
    return taken
