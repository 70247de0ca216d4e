"""Leaves: the chunks of text that a tree is built over (section 3, first paragraph).

A token is a word or a sign, so that leaves are the same for every model.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.harness.web.chunking import packed, pieces
from lm_eval_rag.harness.web.sentences import plain_sentences

STOPS = re.compile(r"[.!?\n]")
CLAUSES = re.compile(r"[,;:]")
ENDLESS = 10


def whole_sentences(text: str, tokens: int) -> list[str]:
    """Chunks of whole sentences of at most ``tokens`` tokens; a longer sentence is a chunk of its own.

    One of more than ``ENDLESS`` times as many, such as a table without a full stop, is cut.
    """
    parts = (
        part
        for sentence in plain_sentences(text)
        for part in ([sentence] if count_words(sentence) <= ENDLESS * tokens else pieces(sentence, tokens))
    )
    return packed(parts, tokens)


def stripped_sentences(text: str, tokens: int) -> list[str]:
    """As the authors' code: what ends a sentence is lost, and a longer sentence is cut at commas.

    Its clauses are chunks of their own. They stand before the chunk that was begun when it came, which goes on with the
    sentences after it. (Theirs may also be blank; those are left out.)
    """
    chunks: list[str] = []
    begun: list[str] = []
    size = 0
    for sentence in filter(str.strip, STOPS.split(text)):
        length = count_words(sentence)
        if length > tokens:
            chunks += packed(map(str.strip, CLAUSES.split(sentence)), tokens)
            continue
        if size + length > tokens:
            chunks.append(" ".join(begun))
            begun, size = [], 0
        begun.append(sentence.strip())
        size += length
    return list(filter(str.strip, [*chunks, " ".join(begun)]))


# variant -> how a passage is split
SPLITS: dict[str, Callable[[str, int], list[str]]] = {"paper": whole_sentences, "official": stripped_sentences}
