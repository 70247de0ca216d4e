"""What serves asks, as the driver sees it: in batches in a thread, or one by one in its loop; and who is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.types import Query, Step


@dataclass(frozen=True, slots=True)
class Served:
    """A backend's reply to one ask, and the step it makes in the trace."""

    value: Any
    step: Step


class BatchBackend(Protocol):
    """Serves one type of ask in batches, called in a thread.

    Attributes:
        batch: The most asks it is given at once.
    """

    batch: int

    def serve(self, asked: Sequence[tuple[Query, Any]]) -> Sequence[Served | CallError]:
        """One reply for each (query, ask), in order; a CallError stands for an ask that failed."""
        ...


@runtime_checkable
class StreamBackend(Protocol):
    """Serves one type of ask as it comes; many calls run at once.

    Attributes:
        gather: As many asks are worth waiting for while cheap asks are still served; 0 starts each at once.
    """

    gather: int

    async def answer(self, query: Query, ask: Any) -> Served | CallError:
        """The reply to one ask; a CallError for one that failed."""
        ...

    async def close(self) -> None:
        """Give up connections."""
        ...


Backend = BatchBackend | StreamBackend


class Progress(Protocol):
    """What is told how a run goes."""

    def update(self, finished: int, waiting: int, steps: Sequence[Step]) -> None:
        """``finished`` more questions are done, ``waiting`` calls are in flight, ``steps`` were just served."""
        ...
