"""Running a coroutine to its end from plain code, and plain code in threads that nobody has to wait for.

An interrupt (SIGINT, SIGTERM) cancels the coroutine at once. Calls that are still running in a :class:`Workers` thread
are abandoned: the threads are daemons, so they hold up neither the end of the run nor that of the process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
INTERRUPTED = 128 + signal.SIGINT  # exit status
MOMENT = 0.5  # seconds
WORKER = "lm-eval-rag worker"  # the name of the threads


class Terminated(SystemExit):
    """The process was asked to end (SIGTERM); its exit status is 143."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, run in a loop of its own; in a thread of its own where a loop runs here already.

    Raises:
        KeyboardInterrupt: SIGINT arrived.
        Terminated: SIGTERM arrived.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        runs_here = False
    else:
        runs_here = True  # a notebook's loop
    return _in_thread(main) if runs_here else asyncio.run(_until_terminated(main))


async def _until_terminated(main: Coroutine[Any, Any, T]) -> T:
    """The result of ``main``; where this is the main thread, SIGTERM cancels it as SIGINT does."""
    task, terminated = asyncio.ensure_future(main), False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop = asyncio.get_running_loop()
    watched = threading.current_thread() is threading.main_thread()
    if watched:
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await task
    except asyncio.CancelledError:
        if terminated:
            raise Terminated from None
        raise
    finally:
        if watched:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGTERM)


def _in_thread(main: Coroutine[Any, Any, T]) -> T:
    results: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
    loop = asyncio.new_event_loop()
    task = loop.create_task(main)

    def work() -> None:
        try:
            results.put((loop.run_until_complete(task), None))
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            results.put((None, error))
        finally:
            loop.close()

    threading.Thread(target=work, name="lm-eval-rag loop", daemon=True).start()
    try:
        value, error = results.get()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        raise
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


class Workers:
    """Daemon threads for calls that would hold up the loop; they start with the first call.

    Args:
        count: Threads, and so the most calls at once.
    """

    def __init__(self, count: int = 1) -> None:
        self._count = count
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """The result of ``function(*arguments)``, called in one of the threads."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def resolve(value: Any, error: BaseException | None) -> None:
            if not future.done():
                future.set_result(value) if error is None else future.set_exception(error)

        def work() -> None:
            try:
                outcome: tuple[Any, BaseException | None] = (function(*arguments), None)
            except BaseException as error:  # noqa: BLE001 - raised where the call is awaited
                outcome = (None, error)
            with suppress(RuntimeError):  # the loop is closed: the run was interrupted
                loop.call_soon_threadsafe(resolve, *outcome)

        if len(self._threads) < self._count:
            self._threads.append(threading.Thread(target=self._work, name=WORKER, daemon=True))
            self._threads[-1].start()
        self._calls.put(work)
        return await future

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    def close(self) -> None:
        """End the threads. Idle ones are gone when this returns; one that is in a call is waited for only a moment.

        A thread that ends while the interpreter does may take the process with it, by an abort of native code.
        """
        for _ in self._threads:
            self._calls.put(None)
        until = time.monotonic() + MOMENT
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._threads = []


def leave(status: int) -> NoReturn:
    """End the process at once: a model that is computing in a thread cannot be waited for."""
    sys.stderr.flush()
    sys.stdout.flush()
    logging.shutdown()
    os._exit(status)


def in_a_call() -> bool:
    """Whether a thread is still in a call after its workers were closed; a plain end of the process may then abort."""
    return any(thread.name == WORKER for thread in threading.enumerate())
