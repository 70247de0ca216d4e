"""From sentences to chunks (section 4.1, Table 5 "Chunk Size 200 x 3").

A sentence longer than ``max_sentence`` is cut. A question and the sentences after it are one chunk of up to
``max_sentence * group``. Other sentences form groups of ``group``; a group ends where a question begins, so that a
chunk holds neighbouring sentences only. The paper gives no unit; here it is characters. In the paper a sentence is a
question if it ends with "?" or begins with the letters of a question word; here it must be the whole word ("Is", not
"Island").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.scoring.normalise import count_words

MAX_SENTENCE, GROUP = 200, 3
QUESTION = re.compile(
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would"
    r"|should)\b|.*[?？؟]$",
    re.IGNORECASE | re.DOTALL,
)
WORD = re.compile(r"\w+|[^\w\s]")  # as count_words has it


def is_question(sentence: str) -> bool:
    """Whether a sentence begins with a question word or ends with a question mark (appendix B)."""
    return QUESTION.match(sentence) is not None


def chunks(sentences: Iterable[str], *, max_sentence: int = MAX_SENTENCE, group: int = GROUP) -> list[str]:
    """Chunks in the order of their sentences; every sentence is in exactly one chunk.

    Args:
        sentences: Without blank ones.
        max_sentence: Limit of characters of a sentence, 1 or more.
        group: Limit of sentences in a chunk without a question, 1 or more.

    Returns:
        Chunks, each of at most ``max_sentence * group`` characters, spaces between sentences not counted.

    Raises:
        UserError: A value below 1.
    """
    longest = at_least("max_sentence", max_sentence) * at_least("group", group)
    groups: list[list[str]] = []
    room, question = 0, False  # of the last chunk: sentences or characters that still fit, and if it has a question
    for sentence in sentences:
        short = sentence[:max_sentence].rstrip()
        cost = len(short) if question else 1
        if cost <= room and (question or not is_question(short)):
            groups[-1].append(short)
            room -= cost
            continue
        question = is_question(short)
        groups.append([short])
        room = longest - len(short) if question else group - 1
    return [" ".join(chunk) for chunk in groups]


def packed(sentences: Iterable[str], tokens: int, overlap: int = 0) -> list[str]:
    """Chunks of whole sentences, in their order; a longer sentence is a chunk of its own.

    Args:
        tokens: Limit of words and signs in a chunk.
        overlap: A chunk begins with the last whole sentences of the one before that have at most so many together, as
            far as they leave room for one more.
    """
    chunks: list[list[str]] = []
    size = 0
    for sentence in sentences:
        length = count_words(sentence)
        if not chunks or size + length > tokens:
            chunks.append(_last(chunks[-1], min(overlap, tokens - length)) if chunks else [])
            size = sum(map(count_words, chunks[-1]))
        chunks[-1].append(sentence)
        size += length
    return [" ".join(chunk) for chunk in chunks]


def pieces(text: str, tokens: int, overlap: int = 0) -> Iterator[str]:
    """Parts of at most ``tokens`` words and signs, each of which begins with the last ``overlap`` of the one before."""
    spans = [match.span() for match in WORD.finditer(text)]
    for start in range(0, max(1, len(spans) - overlap) if spans else 0, tokens - overlap):
        part = spans[start : start + tokens]
        yield text[part[0][0] : part[-1][1]]


def _last(sentences: Sequence[str], room: int) -> list[str]:
    """The last sentences that have at most ``room`` words and signs together."""
    kept: list[str] = []
    for sentence in reversed(sentences):
        room -= count_words(sentence)
        if room < 0:
            break
        kept.insert(0, sentence)
    return kept
