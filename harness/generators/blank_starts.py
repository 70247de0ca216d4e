"""Replies that begin with a line break where a line break is a stop string too: it would end them before any text.

GLM-4's template opens the model's turn without the line break that the model then writes. What is cut here skips it
(:class:`.Decoding`), but a server or an engine that knows the stop string ends the reply at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.generators.base import Completion, Decoding

Reply = Completion | CallError


def without_blank_stops(decoding: Decoding) -> Decoding:
    """What is sent where a stop string of white space must not end a reply before its text."""
    if not decoding.skips_blank:
        return decoding
    return replace(decoding, stop=tuple(stop for stop in decoding.stop if not stop.isspace()))


class BlankStarts:
    """Asks again where a stop string of white space ended a reply without text; after that it is not sent any more.

    The text is cut at it all the same, so that only the tokens written depend on when this was found out.
    """

    def __init__(self) -> None:
        self.seen = False

    async def ask(self, decoding: Decoding, send: Callable[[Decoding], Awaitable[Reply]]) -> Reply:
        """The reply, with the tokens and seconds of both requests if there were two.

        Args:
            send: Makes a request with the stop strings that it is given.
        """
        others = without_blank_stops(decoding)
        if self.seen or others == decoding:
            return await send(others)
        first = await send(decoding)
        if isinstance(first, CallError) or first.text.strip() or first.finish not in ("stop", ""):
            return first
        again = await send(others)
        if isinstance(again, CallError):
            return again
        self.seen = self.seen or bool(again.text.strip())
        return replace(
            again,
            prompt_tokens=_sum(first.prompt_tokens, again.prompt_tokens),
            completion_tokens=_sum(first.completion_tokens, again.completion_tokens),
            seconds=first.seconds + again.seconds,
        )


def _sum(first: int | None, again: int | None) -> int | None:
    return None if first is None or again is None else first + again
