"""Reading the log-probabilities in the reply of a chat API: ``choices[0].logprobs.content``, as OpenAI's API has it."""

from __future__ import annotations

import codecs
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.written import Written

Tokens = tuple[tuple[str, float], ...]
MOST = 20  # alternatives that OpenAI's API gives at most
WHAT_TO_DO = "Leave out gen_logprobs=True, or ask a server and a model that give them."


def logs_of(choice: Mapping[str, Any], text: str, thought_end: str) -> tuple[Tokens, Tokens]:
    """(text, ln P) of each token from the first one of ``text`` on, and of the likeliest tokens in that one's place.

    Args:
        choice: Of the reply's JSON.
        text: The reply without thinking, which its tokens may have before it.
        thought_end: What ends the thinking; "" where the text has it, too.

    Raises:
        CallError: There are none, or they do not spell the text.
    """
    try:
        entries = [(entry, float(entry["logprob"])) for entry in choice["logprobs"]["content"]]
        pieces = _pieces([entry for entry, _ in entries])
        if any(math.isnan(log) for _, log in entries):
            raise ValueError("nan")
        start = _start(pieces, thought_end) if thought_end else 0
        tokens = tuple((piece, log) for piece, (_, log) in zip(pieces, entries, strict=True))[start:]
        Written(text, tokens)
        begin = next((i for i in range(start, len(pieces)) if pieces[i].strip()), len(pieces))
        likeliest = entries[begin][0].get("top_logprobs") or [] if begin < len(pieces) else []
        return tokens, tuple((str(one["token"]), float(one["logprob"])) for one in likeliest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = "do not spell it" if "spell" in str(error) else f"are missing: {str(choice)[:200]}"
        raise CallError(f"the log-probabilities of the reply {why}. {WHAT_TO_DO}") from None


def _pieces(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text of each token; one that ends within a character has it in the token that completes it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    given = (entry["token"].encode() if entry.get("bytes") is None else bytes(entry["bytes"]) for entry in entries)
    return [decoder.decode(one) for one in given]


def _start(pieces: Sequence[str], thought_end: str) -> int:
    """The place of the first token after the thinking; 0 where no token ends it."""
    found = "".join(pieces).rfind(thought_end)
    ends = accumulate(map(len, pieces))
    return 0 if found < 0 else 1 + next(place for place, end in enumerate(ends) if end >= found + len(thought_end))
