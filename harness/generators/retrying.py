"""A request to a server is tried again where that may help; failures of many end the run with their reason."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lm_eval_rag.harness.common.errors import CallError, PermanentError, UserError
from lm_eval_rag.harness.generators import network
from lm_eval_rag.harness.generators.first_requests import FirstRequests
from lm_eval_rag.harness.generators.gate import GIVE_UP, WAIT_TOGETHER, Gate

T = TypeVar("T")


@dataclass(slots=True)
class Retrying:
    """All requests to one server.

    Args:
        gate: What they share.
        tries: How often a request is made at most.
        wait: Seconds before the second try, doubled before each further one.
        first: Of the run: what came of its first requests.
        secrets: Texts that no message may repeat.
        server: What messages call the server and the arguments to look at.
    """

    gate: Gate
    tries: int
    wait: float
    first: FirstRequests
    secrets: Callable[[], Sequence[str]]
    server: network.ServerWords = network.GENERATOR
    _random: random.Random = field(default_factory=lambda: random.Random(0), init=False)

    async def persist(self, once: Callable[[], Awaitable[T]], tokens: int) -> T | CallError:
        """Make a request, again where that may help; a CallError when it fails to the end.

        Args:
            tokens: What it may use of the tokens a minute.

        Raises:
            UserError: The server refuses us or cannot be reached, or too many requests failed alike.
        """
        for tried in range(1, self.tries + 1):
            try:
                async with self.gate.place(tokens):
                    reply = await once()
            except network.errors() as error:
                problem = network.problem_of(error, self.secrets(), self.server)
                last, alike = tried == self.tries or not problem.transient, self.gate.failed(problem.words)
                if problem.hopeless or (problem.unreachable and (last or alike >= GIVE_UP)):
                    raise UserError(self.server.advice(problem)) from None
                if last or alike >= GIVE_UP:
                    ended = self.first.failed(problem.kind, problem.words, at_once=alike >= GIVE_UP)
                    if ended is not None or alike >= GIVE_UP:
                        raise ended or UserError(self.server.advice(problem)) from None
                    kind = CallError if problem.transient else PermanentError
                    return kind(f"{self.server.name}, try {tried} of {self.tries}: {problem.words}")
                await self._pause(problem, tried, together=problem.overloaded or alike >= WAIT_TOGETHER)
            else:
                self.gate.succeeded()
                self.first.answered()
                return reply
        raise AssertionError("unreachable: the last try returns or raises")

    async def _pause(self, problem: network.Problem, tried: int, *, together: bool) -> None:
        """Wait before the next try, alone or with all requests."""
        wait = self.wait * 2 ** (tried - 1) * self._random.uniform(0.5, 1.5)
        seconds = max(min(wait, network.LONGEST), problem.retry_after)
        if together:
            self.gate.pause(seconds)
        else:
            await asyncio.sleep(seconds)
