"""The log-probabilities in the reply of a chat API: ``choices[0].logprobs.content``, as OpenAI's API has it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

Tokens = tuple[tuple[str, float], ...]
SPECIAL = re.compile(r"(<[^<>]*>|\[[A-Z_/]+\])*")  # what a model ends its turn with, without blank characters
LOOKED_AT = 8  # replies without any log-probabilities that end a run
NONE = (
    "its replies came without log-probabilities, or with those of another text. Leave out gen_logprobs=True, or ask a "
    "server and a model that give them (models that think first often do not)."
)


def logs_of(choice: Mapping[str, Any], content: str, text: str, stops: Sequence[str]) -> tuple[Tokens, Tokens]:
    """(text, ln P) of the tokens of a reply, and of the likeliest tokens in the place of its first word.

    The tokens may begin with what the model thought, which servers leave out of the content or not, and may end with a
    stop string or the end of the turn. Where they cannot be told apart without a doubt there are none: ((), ()).

    Args:
        choice: Of the reply's JSON.
        content: The reply without thinking, as the server sent it; blank characters are not compared.
        text: The beginning of it that stays, without a stop string.
        stops: The stop strings.
    """
    try:
        entries = choice["logprobs"]["content"]
        pieces = _pieces(entries)
        logs = [float(entry["logprob"]) for entry in entries]
        likeliest = [
            tuple((_storable(str(one["token"])), float(one["logprob"])) for one in entry.get("top_logprobs") or ())
            for entry in entries
        ]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return (), ()
    if any(log != log for log in logs):
        return (), ()
    ends = list(accumulate(len(_dense(piece)) for piece in pieces))
    start = _start(_dense("".join(pieces)), ends, _dense(content), [_dense(stop) for stop in stops])
    if start is None:
        return (), ()
    first = next(place for place, end in enumerate(ends) if end > start)
    last = next(place for place, end in enumerate(ends) if end >= start + len(_dense(text)))
    word = next((i for i in range(first, last + 1) if any(map(str.isalnum, pieces[i]))), first)
    return tuple(zip(pieces[first : last + 1], logs[first : last + 1], strict=True)), likeliest[word]


def _start(whole: str, ends: Sequence[int], content: str, stops: Sequence[str]) -> int | None:
    """Where the content begins in what the tokens spell: the last place that is a token's first character."""
    begins = {0, *ends}
    place = whole.rfind(content)
    while place >= 0:
        rest = whole[place + len(content) :]
        ended = SPECIAL.fullmatch(rest) or any(stop and rest.startswith(stop) for stop in stops)
        if ended and place in begins:
            return place
        place = whole.rfind(content, 0, place + len(content) - 1)
    return None


def _pieces(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text of each token; one that ends within a character has it in the token that completes it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    given = (
        _storable(entry["token"]).encode() if entry.get("bytes") is None else bytes(entry["bytes"]) for entry in entries
    )
    return [decoder.decode(one) for one in given]


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _dense(text: str) -> str:
    """The text without blank characters."""
    return "".join(text.split())
