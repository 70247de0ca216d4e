"""A generator that answers lists, asked one by one: what waits meets in batches of like length."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.loop import Workers
from lm_eval_rag.harness.generators.base import Completion, Decoding, Generator, Stream


def stream_of(generator: Generator) -> Stream:
    """The stream of a generator: its own, or batches of it."""
    own = getattr(generator, "stream", None)
    stream: Stream = own() if own is not None else Batched(generator)
    return stream


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An ask that waits for its batch; ``decoding`` is None for a log-probability."""

    decoding: Decoding | None
    prompt: str
    other: Any  # sample index, or continuation
    reply: asyncio.Future[Any]


class Batched:
    """Serves asks in batches of ``generator.batch``, one batch after the other, in a thread.

    What waits is divided into batches in the order of length, since padding is what costs; the one with the ask that
    waits longest is next.

    Attributes:
        lanes: Batches at once.
    """

    lanes = 1

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self._waiting: list[_Waiting] = []
        self._serving: dict[int, asyncio.Task[None]] = {}  # by lane
        self._worker = Workers()

    async def generate(self, prompt: str, decoding: Decoding, sample: int) -> Completion | CallError:
        """One continuation, when its batch is done."""
        reply: Completion | CallError = await self._ask(decoding, prompt, sample)
        return reply

    async def loglikelihood(self, prompt: str, continuation: str) -> tuple[float, float] | CallError:
        """ln P(continuation | prompt), when its batch is done."""
        reply: tuple[float, float] | CallError = await self._ask(None, prompt, continuation)
        return reply

    def _ask(self, decoding: Decoding | None, prompt: str, other: Any) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(decoding, prompt, other, loop.create_future())
        self._waiting.append(waiting)
        self._open()
        return waiting.reply

    def _open(self) -> None:
        """Serve what waits by the lanes that are free."""
        free = [lane for lane in range(self.lanes) if lane not in self._serving]
        for lane in free[: len(self._waiting)]:
            self._serving[lane] = asyncio.get_running_loop().create_task(self._serve(lane))

    async def _serve(self, lane: int) -> None:
        try:
            before = 0
            while len(self._waiting) > before:  # more is being asked just now
                before = len(self._waiting)
                await asyncio.sleep(0)
            while self._waiting:
                batch = self._next()
                decoding, asks = batch[0].decoding, [(waiting.prompt, waiting.other) for waiting in batch]
                try:
                    for waiting, reply in zip(batch, await self._replies(lane, decoding, asks), strict=True):
                        if not waiting.reply.done():
                            waiting.reply.set_result(reply)
                except Exception as error:  # noqa: BLE001 - raised where the replies are awaited
                    for waiting in batch:
                        if not waiting.reply.done():
                            waiting.reply.set_exception(error)
                await asyncio.sleep(0)  # those who got a reply may ask again before the next batch is chosen
        finally:
            del self._serving[lane]

    async def _replies(self, lane: int, decoding: Decoding | None, asks: Sequence[tuple[str, Any]]) -> list[Any]:
        return await self._worker.call(run_batch, self.generator, decoding, asks)

    def _next(self) -> list[_Waiting]:
        oldest = self._waiting[0]
        alike = [waiting for waiting in self._waiting if waiting.decoding == oldest.decoding]
        alike.sort(key=lambda waiting: -len(waiting.prompt))
        place, size = next(i for i, waiting in enumerate(alike) if waiting is oldest), self.generator.batch
        batch = alike[place - place % size :][:size]
        taken = set(map(id, batch))
        self._waiting = [waiting for waiting in self._waiting if id(waiting) not in taken]
        return batch

    async def close(self) -> None:
        """Stop serving; a batch that is running is abandoned."""
        serving = list(self._serving.values())
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        self._worker.close()


def run_batch(generator: Generator, decoding: Decoding | None, asks: Sequence[tuple[str, Any]]) -> list[Any]:
    """The replies to a batch of (prompt, sample index), or of (prompt, continuation) where ``decoding`` is None.

    Each has its share of the seconds.
    """
    began = perf_counter()
    replies: Sequence[Any]
    if decoding is None:
        replies = generator.loglikelihood(asks)
    else:
        complete = getattr(generator, "complete", generator.generate)
        replies = complete([prompt for prompt, _ in asks], decoding, [sample for _, sample in asks])
    seconds = (perf_counter() - began) / len(asks)
    return [_timed(reply, seconds) for reply in replies]


def _timed(reply: Any, seconds: float) -> Any:
    if isinstance(reply, str):
        return Completion(reply, seconds=seconds)
    if isinstance(reply, Completion):
        return reply if reply.seconds else replace(reply, seconds=seconds)
    return (float(reply), seconds) if isinstance(reply, (int, float)) else reply
