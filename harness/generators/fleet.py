"""Several servers of one model: ``gen_base_url=[URL,URL]``.

A request goes to the server with the fewest requests in flight. Among several of these it goes to the one that saw the
longest beginning of the prompt before, whose prefix cache may still hold it. A server that fails is left out for a
while, twice as long after each further failure, and is then tried with one request. Its requests go to another server
at once; only when no other is left does a request fail, and :mod:`lm_eval_rag.harness.generators.retrying` decides.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators import network

log = logging.getLogger(__name__)
T = TypeVar("T")
BLOCK = 256  # characters; prompts are compared block by block
KEPT = 4096  # blocks that are remembered of a server


def addresses(given: Any) -> tuple[str, ...]:
    """The addresses of ``gen_base_url=``: one, or several as a list or joined by commas, with brackets or without.

    Raises:
        UserError: An address is named twice.
    """
    if given is None:
        return ()
    parts = str(given).strip().removeprefix("[").removesuffix("]").split(",") if isinstance(given, str) else given
    urls = tuple(str(part).strip().strip("'\"") for part in parts)
    for url in urls:
        if urls.count(url) > 1:
            raise UserError(f"gen_base_url names {url} twice. Give each server once.")
    return urls


@dataclass(slots=True)
class Place:
    """One of the servers.

    Args:
        url: Its address.
        busy: Requests in flight.
        failures: In a row.
        out_until: When it may be tried again, on the monotonic clock.
        seen: Beginnings of prompts that it was sent, by hash; the oldest first.
    """

    url: str
    busy: int = 0
    failures: int = 0
    out_until: float = 0.0
    seen: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def is_out(self, now: float) -> bool:
        """Whether it is left out: it failed a short time ago, or one request is trying it again."""
        return now < self.out_until or (self.failures > 0 and self.busy > 0)

    def known(self, blocks: Sequence[int]) -> int:
        """How many of a prompt's first blocks it has seen."""
        return next((i for i, block in enumerate(blocks) if block not in self.seen), len(blocks))

    def remember(self, blocks: Iterable[int]) -> None:
        """It is sent a prompt."""
        for block in blocks:
            self.seen[block] = None
            self.seen.move_to_end(block)
        while len(self.seen) > KEPT:
            self.seen.popitem(last=False)


class Fleet:
    """Sends each request to one of several servers.

    Args:
        urls: Their addresses.
        width: Requests at once to each.
        wait: Seconds for which a server is left out after its first failure.
        secrets: Texts that no message may repeat.
    """

    def __init__(self, urls: Sequence[str], width: int, wait: float, secrets: Callable[[], Sequence[str]]) -> None:
        self.places = [Place(url) for url in urls]
        self.width, self.wait, self._secrets = width, wait, secrets
        self._changed = asyncio.Event()

    async def send(self, prompt: str, post: Callable[[str], Awaitable[T]]) -> T:
        """What ``post(url)`` returns for the first server that answers.

        Raises:
            Exception: What ``post`` raised for the last server that was tried; at once where the request is at fault.
        """
        blocks, failed = _blocks(prompt), dict[str, Exception]()
        while True:
            place = await self._chosen(blocks, failed)
            if place is None:
                raise list(failed.values())[-1]
            place.busy += 1
            place.remember(blocks)
            try:
                reply = await post(place.url)
            except network.errors() as error:
                problem = network.problem_of(error, self._secrets())
                if not (problem.transient or problem.hopeless or problem.unreachable):
                    raise
                self._leave_out(place, problem)
                failed[place.url] = error
            else:
                self._take_back(place)
                return reply
            finally:
                place.busy -= 1
                self._changed.set()

    async def _chosen(self, blocks: Sequence[int], failed: Iterable[str]) -> Place | None:
        """The server to ask, when one has room; None where all others failed this request or are left out."""
        while True:
            now = time.monotonic()
            others = [place for place in self.places if place.url not in failed]
            free = [place for place in others if place.busy < self.width and not place.is_out(now)]
            if free:
                return min(free, key=lambda place: (place.busy, -place.known(blocks)))
            if failed and all(place.is_out(now) for place in others):
                return None
            back = [place.out_until - now for place in others if place.out_until > now]
            self._changed.clear()
            try:
                async with asyncio.timeout(min(back, default=None)):
                    await self._changed.wait()
            except TimeoutError:
                pass  # a server may be tried again

    def _leave_out(self, place: Place, problem: network.Problem) -> None:
        now = time.monotonic()
        if now < place.out_until:
            return  # several of its requests failed together
        if not place.failures:
            others = sum(not other.failures for other in self.places) - 1
            log.warning(
                "The server %s is left out for now (%s); %d of %d servers answer.",
                place.url, problem.words, others, len(self.places),
            )  # fmt: skip
        place.failures += 1
        seconds = min(network.LONGEST, self.wait * 2 ** min(place.failures - 1, 20))
        place.out_until = now + max(seconds, problem.retry_after)

    def _take_back(self, place: Place) -> None:
        if place.failures:
            log.warning("The server %s answers again.", place.url)
        place.failures, place.out_until = 0, 0.0


def _blocks(prompt: str) -> list[int]:
    """A hash of the prompt's first block, of its first two, and so on; whole blocks only."""
    return [hash(prompt[:end]) for end in range(BLOCK, min(len(prompt), 64 * BLOCK) + 1, BLOCK)]
