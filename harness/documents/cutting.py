"""Long documents as passages: whole sentences within a budget of words, with overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.parts import part_id
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.harness.web.chunking import packed, pieces
from lm_eval_rag.harness.web.sentences import plain_sentences


def check_budget(tokens: int, overlap: int) -> None:
    """Raise a UserError unless passages of ``tokens`` words can overlap by ``overlap``."""
    at_least("passage_tokens", tokens)
    at_least("overlap", overlap, 0)
    if overlap >= tokens:
        raise UserError(f"overlap={overlap} is not allowed: give less than passage_tokens={tokens}.")


def cut(document: Passage, tokens: int, overlap: int, title: str = "") -> list[Passage]:
    """A document as passages ``<id>#0``, ``<id>#1``, ...; as it is, if it is short enough.

    Args:
        tokens: Limit of words and signs in a passage, the title not counted. A longer sentence is cut into parts.
        overlap: A passage repeats the last sentences of the one before that have at most so many words and signs.
        title: The title, which is the first line of every passage.
    """
    head = f"{title}\n" if title else ""
    if count_words(document.text) <= tokens:
        return [replace(document, text=head + document.text)]
    sentences = [part for sentence in plain_sentences(document.text) for part in _parts(sentence, tokens)]
    return [
        replace(document, id=part_id(document.id, number), text=head + text)
        for number, text in enumerate(packed(sentences, tokens, overlap))
    ]


def _parts(sentence: str, tokens: int) -> Iterator[str]:
    if len(sentence) <= tokens or count_words(sentence) <= tokens:
        yield sentence
    else:
        yield from pieces(sentence, tokens)
