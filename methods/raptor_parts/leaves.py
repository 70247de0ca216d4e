"""Leaves: the chunks of text that a tree is built over (section 3, first paragraph).

A token is a word or a sign, so that leaves are the same for every model.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.harness.web.chunking import packed
from lm_eval_rag.harness.web.sentences import plain_sentences

STOPS = re.compile(r"[.!?\n]")
CLAUSES = re.compile(r"[,;:]")


def whole_sentences(text: str, tokens: int) -> list[str]:
    """Chunks of whole sentences of at most ``tokens`` tokens; a longer sentence is a chunk of its own."""
    return packed(plain_sentences(text), tokens)


def stripped_sentences(text: str, tokens: int) -> list[str]:
    """As the authors' code: what ends a sentence is lost, and a longer sentence is cut at commas."""
    parts: list[str] = []
    for sentence in filter(str.strip, STOPS.split(text)):
        clauses = CLAUSES.split(sentence) if count_words(sentence) > tokens else [sentence]
        parts += [clause.strip() for clause in clauses if clause.strip()]
    return packed(parts, tokens)


# variant -> how a passage is split
SPLITS: dict[str, Callable[[str, int], list[str]]] = {"paper": whole_sentences, "official": stripped_sentences}
