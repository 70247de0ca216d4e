"""Sentences to chunks (section 4.1, Table 5 "Chunk Size 200 x 3").

A sentence over ``max_sentence`` is cut; a question and what follows it are one chunk of up to ``max_sentence * group``;
other sentences go in groups of ``group``, which end where a question begins, since they would not be neighbours else.
The paper gives no unit; it is characters here. Its test takes any sentence for a question that ends with "?" or begins
with the letters of a question word; here they must be the whole word ("Island" is none, "Is" is).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lm_eval_rag.harness.common.errors import at_least

MAX_SENTENCE, GROUP = 200, 3
QUESTION = re.compile(
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would"
    r"|should)\b|.*[?？؟]$",
    re.IGNORECASE | re.DOTALL,
)


def is_question(sentence: str) -> bool:
    """Whether a sentence begins with a question word or ends with a question mark (appendix B)."""
    return QUESTION.match(sentence) is not None


def chunks(sentences: Iterable[str], *, max_sentence: int = MAX_SENTENCE, group: int = GROUP) -> list[str]:
    """Chunks in the order of their sentences; every sentence is in exactly one.

    Args:
        sentences: Without blank ones.
        max_sentence: Characters of a sentence that are kept, 1 or more.
        group: Sentences in a chunk without a question, 1 or more.

    Returns:
        Chunks, each of at most ``max_sentence * group`` characters, spaces between sentences not counted.

    Raises:
        UserError: A value below 1.
    """
    longest = at_least("max_sentence", max_sentence) * at_least("group", group)
    found: list[list[str]] = []
    room, asked = 0, False  # of the last chunk: sentences or characters that still fit, and whether a question opens it
    for sentence in sentences:
        short = sentence[:max_sentence].rstrip()
        cost = len(short) if asked else 1
        if cost <= room and (asked or not is_question(short)):
            found[-1].append(short)
            room -= cost
            continue
        asked = is_question(short)
        found.append([short])
        room = longest - len(short) if asked else group - 1
    return [" ".join(chunk) for chunk in found]
