"""The driver: runs a method over all questions at once and serves what they ask in batches.

Every question is a generator that stops at its next ask. Cheap asks (rules, retrieval, lookups) are served first, so
that questions which differ in their number of cheap steps still meet in one generation batch.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Ask
from lm_eval_rag.harness.core.contract import check_answer, check_ask, check_error
from lm_eval_rag.harness.core.types import Answer, Plan, Query, Step, Trace

Method = Callable[[Query], Plan[Answer]]


@dataclass(frozen=True, slots=True)
class Served:
    """A backend's reply to one ask, and the step it makes in the trace."""

    value: Any
    step: Step


class Backend(Protocol):
    """Serves one type of ask.

    Attributes:
        batch: The most asks it is given at once.
        costly: True for generation: such asks wait until no cheap ask is left.
    """

    batch: int
    costly: bool

    def serve(self, asked: Sequence[tuple[Query, Any]]) -> Sequence[Served | CallError]:
        """One reply for each (query, ask), in order; a CallError stands for an ask that failed."""
        ...


class Progress(Protocol):
    """What is told how a run goes."""

    def update(self, finished: int, waiting: int, steps: Sequence[Step]) -> None:
        """``finished`` more questions are done, ``waiting`` calls are in flight, ``steps`` were just served."""
        ...


@dataclass(slots=True)
class _Running:
    """One question on its way."""

    position: int
    query: Query
    plan: Plan[Answer]
    steps: list[Step] = field(default_factory=list)


class Driver:
    """Runs one method over many questions.

    Args:
        method: A generator function of one query.
        backends: What serves each type of ask.
        progress: Told after every batch; None for silence.
    """

    def __init__(self, method: Method, backends: Mapping[type, Backend], progress: Progress | None = None) -> None:
        self.method = method
        self.backends = backends
        self.progress = progress
        self._waiting: dict[type, deque[tuple[_Running, Ask]]] = defaultdict(deque)
        self._results: dict[int, tuple[Answer, Trace]] = {}

    def run(self, queries: Sequence[Query]) -> list[tuple[Answer, Trace]]:
        """Answer every query.

        Returns:
            (answer, trace) in the order of ``queries``. A question one of whose asks failed, and whose method did not
            handle it, has an empty answer and ``trace.failure`` set.

        Raises:
            UserError: The method breaks its contract, or asks for something that no backend here serves.
        """
        self._waiting.clear()
        self._results = {}
        for position, query in enumerate(queries):
            self._advance(_Running(position, query, self.method(query)), None)
        while any(self._waiting.values()):
            self._serve_one_batch()
        return [self._results[position] for position in range(len(queries))]

    def _serve_one_batch(self) -> None:
        """Serve the first batch of one type of ask: a cheap type as long as there is one, else the longest queue."""
        kinds = [kind for kind, queue in self._waiting.items() if queue]
        kind = min(kinds, key=lambda kind: (self.backends[kind].costly, -len(self._waiting[kind]), kind.__name__))
        queue, backend, before = self._waiting[kind], self.backends[kind], len(self._results)
        part = [queue.popleft() for _ in range(min(backend.batch, len(queue)))]
        replies = backend.serve([(running.query, ask) for running, ask in part])
        for (running, _), reply in zip(part, replies, strict=True):
            self._advance(running, reply)
        if self.progress is not None:
            steps = [reply.step for reply in replies if isinstance(reply, Served)]
            self.progress.update(len(self._results) - before, sum(map(len, self._waiting.values())), steps)

    def _advance(self, running: _Running, reply: Served | CallError | None) -> None:
        """Send a reply into a question and file its next ask, or its answer."""
        try:
            if isinstance(reply, CallError):
                ask = running.plan.throw(reply)
            elif reply is None:
                ask = next(running.plan)
            else:
                running.steps.append(reply.step)
                ask = running.plan.send(reply.value)
        except StopIteration as stop:
            check_answer(self.method, stop.value)
            self._results[running.position] = (stop.value, Trace(tuple(running.steps)))
        except CallError as error:
            self._results[running.position] = (Answer(""), Trace(tuple(running.steps), failure=str(error)))
        except (AttributeError, TypeError) as error:
            check_error(self.method, error)
            raise
        else:
            self._file(running, ask)

    def _file(self, running: _Running, ask: Ask) -> None:
        check_ask(self.method, ask)
        if type(ask) not in self.backends:
            served = ", ".join(sorted(kind.__name__ for kind in self.backends))
            raise UserError(
                f"Question {running.query.id!r} needs {type(ask).__name__}, which nothing serves here. Served: "
                f"{served or 'nothing'}. Give the backend it needs (a generator=, a corpus=, or rules)."
            )
        self._waiting[type(ask)].append((running, ask))
