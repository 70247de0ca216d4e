"""Whose request a server gets first: that of the question which began first.

A run has many questions under way. If they took turns, all would end at the end of the run, and until a question asks
again a server would have forgotten the beginning of its prompt (its prefix cache). The driver says whose call it makes;
who has places to give asks :func:`turn`.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from heapq import heappop, heappush
from itertools import count
from types import TracebackType

_TURN: ContextVar[int] = ContextVar("turn", default=0)


def take_turn(position: int) -> None:
    """From here on this task asks for the question at this position of the run; lower ones go first."""
    _TURN.set(position)


def turn() -> int:
    """The position of the question that this task asks for; 0 where no driver said so."""
    return _TURN.get()


class Places:
    """As many tasks at once as there are places; a free one goes to the first in turn, then to the first come.

    Args:
        free: How many there are, 1 or more.
    """

    def __init__(self, free: int) -> None:
        self._free = free
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []  # turn, arrival; a heap
        self._arrivals = count()

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (turn(), next(self._arrivals), place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it was given the place, and will not take it
                self._give()
            raise

    async def __aexit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._give()

    def _give(self) -> None:
        """Hand a place on; one that nobody waits for is free."""
        while self._waiting:
            *_, place = heappop(self._waiting)
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
