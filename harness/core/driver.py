"""The driver: runs a method over many questions at once and serves what they ask.

Every question is a generator that stops at its next ask. A window of questions is in flight: they start in order and
finish as they can. Cheap asks (rules, retrieval, lookups) are served in batches, one after the other, in a thread; asks
of a generator run all at once, and each question goes on as soon as its own reply is there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Ask, Together
from lm_eval_rag.harness.core.backend import Backend, Progress, Served, StreamBackend
from lm_eval_rag.harness.core.contract import check_answer, check_ask, check_error
from lm_eval_rag.harness.core.loop import Workers, run_async
from lm_eval_rag.harness.core.turn import take_turn
from lm_eval_rag.harness.core.types import Answer, Plan, Query, Step, Trace

Method = Callable[[Query], Plan[Answer]]
WINDOW = 256  # questions in flight, unless the generator is wider
REFILL = 3 / 4  # of the window: below it new questions start, so that their cheap asks meet in one batch


@dataclass(slots=True)
class _Running:
    """One question on its way."""

    position: int
    query: Query
    plan: Plan[Any]
    steps: list[Step] = field(default_factory=list)
    part: tuple[_Group, int] | None = None  # for one of several plans: the group, and its place there


@dataclass(slots=True)
class _Group:
    """Plans of one question that run at once, and what has become of them by place."""

    owner: _Running
    left: int
    values: dict[int, Any] = field(default_factory=dict)
    steps: dict[int, list[Step]] = field(default_factory=dict)
    failures: dict[int, CallError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Joined:
    """What the plans of a group returned."""

    values: tuple[Any, ...]


_Reply = Served | CallError | _Joined | None  # None starts a question


class Driver:
    """Runs one method over many questions.

    Args:
        method: A generator function of one query.
        backends: What serves each type of ask.
        progress: Told whenever something was served; None for silence.
        window: The most questions in flight, 1 or more.
        on_step: Told of every step of a question, which its trace then lacks: for plans of more steps than fit in
            memory. None keeps them in the trace.
    """

    def __init__(
        self,
        method: Method,
        backends: Mapping[type, Backend],
        progress: Progress | None = None,
        window: int = WINDOW,
        on_step: Callable[[Query, Step], None] | None = None,
    ) -> None:
        self.method, self.backends, self.progress, self.window = method, backends, progress, window
        self.on_step = on_step

    def run(
        self, queries: Sequence[Query], keep: Callable[[Query, Answer, Trace], Any] = lambda _, *result: result
    ) -> list[Any]:
        """Answer every query.

        Args:
            keep: Makes what is kept of a question when it ends; by default (answer, trace).

        Returns:
            What was kept, in the order of ``queries``. A question one of whose asks failed, and whose method did not
            handle it, has an empty answer and ``trace.failure`` set.

        Raises:
            UserError: The method breaks its contract or asks for something that no backend here serves, or a backend
                cannot go on.
        """
        return run_async(_Run(self, queries, keep).run())


class _Run:
    """One run of a driver: the questions in flight, and what they wait for."""

    def __init__(self, driver: Driver, queries: Sequence[Query], keep: Callable[[Query, Answer, Trace], Any]) -> None:
        self.driver, self.queries, self.keep = driver, queries, keep
        self.results: dict[int, Any] = {}
        self.in_flight = 0
        self.ready: deque[tuple[_Running, _Reply]] = deque()  # questions that can go on, with the reply they get
        self.streams = {kind: served for kind, served in driver.backends.items() if isinstance(served, StreamBackend)}
        self.queues: dict[type, deque[tuple[_Running, Ask]]] = {kind: deque() for kind in driver.backends}
        self.calls: set[asyncio.Task[None]] = set()
        self.cheap: asyncio.Task[None] | None = None  # the batch of cheap asks that is being served
        self.wake = asyncio.Event()
        self.worker = Workers()
        self.error: BaseException | None = None

    async def run(self) -> list[Any]:
        """Everything that was kept, in the order of the queries."""
        coming = iter(enumerate(self.queries))
        try:
            while len(self.results) < len(self.queries):
                self._admit(coming)
                if self.ready:
                    self._advance(*self.ready.popleft())
                    continue
                self._start_calls()
                await self.wake.wait()
                self.wake.clear()
                if self.error is not None:
                    raise self.error
            return [self.results[position] for position in range(len(self.queries))]
        finally:
            await self._end()

    def _admit(self, coming: Iterator[tuple[int, Query]]) -> None:
        """Fill the window again once it has run down."""
        if self.in_flight > REFILL * self.driver.window:
            return
        for position, query in coming:
            self.in_flight += 1
            self.ready.append((_Running(position, query, self.driver.method(query)), None))
            if self.in_flight >= self.driver.window:
                return

    def _advance(self, running: _Running, reply: _Reply) -> None:
        """Send a reply into a question and file its next ask, or its answer."""
        try:
            if isinstance(reply, CallError):
                ask = running.plan.throw(reply)
            elif reply is None:
                ask = next(running.plan)
            elif isinstance(reply, _Joined):
                ask = running.plan.send(reply.values)
            else:
                self._note(running, reply.step)
                ask = running.plan.send(reply.value)
        except StopIteration as stop:
            self._end_plan(running, stop.value, None)
        except CallError as error:
            self._end_plan(running, None, error)
        except Exception as error:
            if isinstance(error, (AttributeError, TypeError)):
                check_error(self.driver.method, error)
            if not isinstance(error, UserError):
                error.add_note(f"The method was answering the question {running.query.id!r}.")
            raise
        else:
            self._file(running, ask)

    def _note(self, running: _Running, step: Step) -> None:
        if self.driver.on_step is None:
            running.steps.append(step)
        else:
            self.driver.on_step(running.query, step)

    def _end_plan(self, running: _Running, value: Any, error: CallError | None) -> None:
        if running.part is not None:
            self._join(*running.part, running.steps, value, error)
        elif error is not None:
            self._finish(running, Answer(""), str(error))
        else:
            check_answer(self.driver.method, value)
            self._finish(running, value, None)

    def _split(self, running: _Running, ask: Together) -> None:
        """Start the plans of a group; the question goes on when all have ended."""
        group = _Group(running, len(ask.plans))
        for place, plan in enumerate(ask.plans):
            self.ready.append((_Running(running.position, running.query, plan, part=(group, place)), None))
        if not ask.plans:
            self.ready.append((running, _Joined(())))

    def _join(self, group: _Group, place: int, steps: list[Step], value: Any, error: CallError | None) -> None:
        """A plan of a group has ended; steps and values are in the order of the plans, whichever ended first."""
        group.steps[place], group.values[place], group.left = steps, value, group.left - 1
        if error is not None:
            group.failures[place] = error
        if group.left:
            return
        places = sorted(group.steps)
        group.owner.steps += [step for place in places for step in group.steps[place]]
        joined = _Joined(tuple(group.values[place] for place in places))
        self.ready.append((group.owner, group.failures[min(group.failures)] if group.failures else joined))

    def _finish(self, running: _Running, answer: Answer, failure: str | None) -> None:
        self.results[running.position] = self.keep(running.query, answer, Trace(tuple(running.steps), failure))
        self.in_flight -= 1
        self._tell(1, ())

    def _file(self, running: _Running, ask: Ask) -> None:
        check_ask(self.driver.method, ask)
        if isinstance(ask, Together):
            self._split(running, ask)
            return
        if type(ask) not in self.queues:
            served = ", ".join(sorted(kind.__name__ for kind in self.queues))
            raise UserError(
                f"Question {running.query.id!r} needs {type(ask).__name__}, which nothing serves here. Served: "
                f"{served or 'nothing'}. Give the backend it needs (a generator=, a corpus=, or rules)."
            )
        self.queues[type(ask)].append((running, ask))

    def _start_calls(self) -> None:
        """Start the longest queue of cheap asks, and every other ask that need not wait for these."""
        if self.cheap is None:
            cheap = [kind for kind, queue in self.queues.items() if queue and kind not in self.streams]
            if cheap:
                kind = min(cheap, key=lambda kind: (-len(self.queues[kind]), kind.__name__))
                self.cheap = asyncio.create_task(self._serve(kind))
        for kind, backend in self.streams.items():
            queue = self.queues[kind]
            if self.cheap is None or len(queue) >= backend.gather:
                while queue:
                    task = asyncio.create_task(self._call(backend, *queue.popleft()))
                    self.calls.add(task)
                    task.add_done_callback(self.calls.discard)
        self._tell(0, ())  # a batch of a local model ends all its calls at once: say how many the next has

    async def _serve(self, kind: type) -> None:
        """Serve the first batch of one queue of cheap asks."""
        queue, backend = self.queues[kind], self.driver.backends[kind]
        assert not isinstance(backend, StreamBackend)
        part = [queue.popleft() for _ in range(min(backend.batch, len(queue)))]
        try:
            replies = await self.worker.call(backend.serve, [(running.query, ask) for running, ask in part])
            for (running, _), reply in zip(part, replies, strict=True):
                self.ready.append((running, reply))
            self._tell(0, [reply.step for reply in replies if isinstance(reply, Served)])
        except Exception as error:  # noqa: BLE001 - ends the run, which raises it
            self.error = self.error or error
        self.cheap = None
        self.wake.set()

    async def _call(self, backend: StreamBackend, running: _Running, ask: Ask) -> None:
        take_turn(running.position)
        try:
            reply = await backend.answer(running.query, ask)
            self.ready.append((running, reply))
            self.calls -= {asyncio.current_task()}  # no longer in flight
            self._tell(0, [reply.step] if isinstance(reply, Served) else ())
        except Exception as error:  # noqa: BLE001 - ends the run, which raises it
            self.error = self.error or error
        self.wake.set()

    def _tell(self, finished: int, steps: Sequence[Step]) -> None:
        if self.driver.progress is not None:
            waiting = len(self.calls) + sum(map(len, self.queues.values()))
            self.driver.progress.update(finished, waiting, steps)

    async def _end(self) -> None:
        """Cancel what is still running and close the backends."""
        tasks = [*self.calls, *([self.cheap] if self.cheap else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for backend in self.streams.values():
            await backend.close()
        self.worker.close()
