"""What all requests to one server share: how many at once, whose first, how often, one pause, and when to give up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiolimiter import AsyncLimiter

from lm_eval_rag.harness.core.turn import Places

WAIT_TOGETHER = 3  # failures in a row, all alike, after which no request starts before the next try of the last one
GIVE_UP = 20  # such failures after which no question can be expected to be answered
MINUTE = 60.0


class Gate:
    """Lets requests through to one server.

    Args:
        width: Requests at once.
        rpm: Requests a minute at most; None for no limit.
        tpm: Tokens a minute at most, prompt and continuation; None for no limit.
    """

    def __init__(self, width: int, rpm: int | None = None, tpm: int | None = None) -> None:
        self._places = Places(width)
        self._requests = AsyncLimiter(rpm, MINUTE) if rpm else None
        self._tokens = AsyncLimiter(tpm, MINUTE) if tpm else None
        self._paused_until = 0.0
        self._alike: tuple[str, int] = ("", 0)

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[None]:
        """Wait for a free place, the end of a pause, and the limits; ``tokens`` is what the request may use."""
        async with self._places:
            while (left := self._paused_until - time.monotonic()) > 0:
                await asyncio.sleep(left)
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
            yield

    def pause(self, seconds: float) -> None:
        """Let no request start before ``seconds`` have passed; the longest of several pauses counts."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def succeeded(self) -> None:
        """A request was answered."""
        self._alike = ("", 0)

    def failed(self, reason: str) -> int:
        """A request failed; how many in a row have now failed for the same reason."""
        last, count = self._alike
        self._alike = (reason, count + 1 if reason == last else 1)
        return self._alike[1]
