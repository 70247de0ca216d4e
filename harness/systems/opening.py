"""A system made ready to be asked: a function (plain or async, of one question or of many), or an endpoint."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Protocol, get_type_hints
from urllib.parse import urlsplit

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.common.loading import Loaded, load_function
from lm_eval_rag.harness.core.asks import System
from lm_eval_rag.harness.core.loop import Workers
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.generators import network
from lm_eval_rag.harness.generators.first_requests import FirstRequests
from lm_eval_rag.harness.generators.gate import Gate
from lm_eval_rag.harness.generators.retrying import Retrying
from lm_eval_rag.harness.systems.exchange import Question

WAIT = 1.0  # seconds before the second try
GATHER = 0.01  # seconds in which the questions of a batch come together
CHAT = "/chat/completions"  # how the address of an OpenAI-compatible server ends
WORDS = network.ServerWords(
    "system",
    "url=, key_env= and that it runs",
    "its log, and try one question with curl as in docs/your_system.md",
    "timeout=",
)
OTHERWISE = "url=, or what the endpoint expects (docs/your_system.md)"


class OpenSystem(Protocol):
    """A system that answers.

    Attributes:
        fingerprint: What its answers depend on, as far as it can be known from outside.
    """

    fingerprint: str

    async def ask(self, query: Query) -> tuple[Any, float] | CallError:
        """What it returns for a question, and the seconds it took.

        Raises:
            UserError: It cannot answer any question.
        """
        ...

    async def close(self) -> None:
        """Give up threads and connections."""
        ...


def open_system(system: System) -> OpenSystem:
    """A system, opened.

    Raises:
        UserError: It cannot be loaded, or a value is not allowed.
    """
    if (system.function is None) == (system.url is None):
        raise UserError("external needs either function=FILE.py:NAME or url=http://..., and not both.")
    return FunctionSystem(system) if system.url is None else Endpoint(system)


class FunctionSystem:
    """A function of the user's. It gets the text of a question, or a Query where its parameter is annotated so."""

    def __init__(self, system: System) -> None:
        given = system.function
        loaded = given if isinstance(given, Loaded) else load_function(str(given), "function")
        self.fingerprint = f"function {loaded.identity}"
        self._function, self._batch, self._timeout = loaded.function, system.batch, system.timeout
        self._is_async = any(map(inspect.iscoroutinefunction, (loaded.function, type(loaded.function).__call__)))
        self._takes = _what_it_takes(loaded.function)
        self._workers = Workers(system.concurrency)
        self._places: asyncio.Semaphore | None = None
        self._concurrency = system.concurrency
        self._waiting: list[tuple[Query, asyncio.Future[tuple[Any, float] | CallError]]] = []
        self._file = getattr(getattr(loaded.function, "__code__", None), "co_filename", None)

    async def ask(self, query: Query) -> tuple[Any, float] | CallError:
        """See :class:`OpenSystem`; what the function raises is the question's own failure."""
        if self._batch == 1:
            return await self._call(self._takes(query))
        future: asyncio.Future[tuple[Any, float] | CallError] = asyncio.get_running_loop().create_future()
        self._waiting.append((query, future))
        if len(self._waiting) < self._batch:
            await asyncio.sleep(GATHER)
        if not future.done() and (query, future) in self._waiting:
            part, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            await self._serve(part)
        return await future

    async def _serve(self, part: Sequence[tuple[Query, asyncio.Future[tuple[Any, float] | CallError]]]) -> None:
        """Call the function with several questions, and hand each its reply."""
        reply = await self._call([self._takes(query) for query, _ in part])
        if not isinstance(reply, CallError):
            values, seconds = reply
            if isinstance(values, Sequence) and not isinstance(values, str) and len(values) == len(part):
                for (_, future), value in zip(part, values, strict=True):
                    future.set_result((value, seconds / len(part)))
                return
            reply = CallError(
                f"the function got {len(part)} questions (batch=) and must return a list of as many replies"
            )
        for _, future in part:
            future.set_result(reply)

    async def _call(self, argument: Any) -> tuple[Any, float] | CallError:
        if self._places is None:
            self._places = asyncio.Semaphore(self._concurrency)
        async with self._places:
            timed = partial(_timed, self._function)
            asked = self._timed(argument) if self._is_async else self._workers.call(timed, argument)
            try:
                return await asyncio.wait_for(asked, self._timeout)
            except TimeoutError:
                return CallError(f"the function took longer than timeout={self._timeout:g} seconds")
            except _ExitError as error:
                return CallError(f"the function called sys.exit ({self._place(error)})")
            except Exception as error:  # noqa: BLE001 - whatever the user's code raises is this question's failure
                return CallError(f"the function raised {type(error).__name__}: {error} ({self._place(error)})")

    def _place(self, error: Exception) -> str:
        """``my.py, line 12``: where the error arose, in the function's own file if that was on the way."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == self._file]
        last = (own or frames)[-1]
        return f"{Path(last.filename).name}, line {last.lineno}"

    async def _timed(self, argument: Any) -> tuple[Any, float]:
        began = time.perf_counter()
        try:
            return await self._function(argument), time.perf_counter() - began
        except SystemExit as error:
            raise _ExitError().with_traceback(error.__traceback__) from None

    async def close(self) -> None:
        """End the threads."""
        self._workers.close()


def _timed(function: Callable[..., Any], argument: Any) -> tuple[Any, float]:
    """What a function returns, and its own seconds, without those in which it waited for its thread."""
    began = time.perf_counter()
    try:
        return function(argument), time.perf_counter() - began
    except SystemExit as error:
        raise _ExitError().with_traceback(error.__traceback__) from None


class _ExitError(Exception):
    """The user's code called sys.exit, which would end the run without a word."""


def _what_it_takes(function: Callable[..., Any]) -> Callable[[Query], Any]:
    """What a function is given of a query: all of it where its first parameter is annotated Query, else the text."""
    try:
        first = next(iter(inspect.signature(function).parameters))
        hint = get_type_hints(function if inspect.isroutine(function) else type(function).__call__).get(first)
    except (StopIteration, ValueError, TypeError, NameError):
        hint = None
    if hint is Query or Query in getattr(hint, "__args__", ()):
        return lambda query: query
    return lambda query: query.text


class Endpoint:
    """An HTTP endpoint: gets a question as JSON by POST, or as a chat where its address is that of a chat server."""

    def __init__(self, system: System) -> None:
        url = str(system.url)
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise UserError(f"url={url!r} is not allowed: give http://HOST/PATH or https://HOST/PATH.")
        self.url, self._model, self._timeout = url, system.model, system.timeout
        self._is_chat = urlsplit(url).path.rstrip("/").endswith(CHAT)
        self.fingerprint = f"endpoint {url}" + (f", model {system.model}" if system.model else "")
        key = os.environ.get(system.key_env, "") if system.key_env else ""
        if system.key_env and not key:
            raise UserError(f"key_env={system.key_env}: this environment variable is not set. Set it to the key.")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._secrets = [key] if key else []
        self._concurrency, self._tries = system.concurrency, system.tries
        self._first = FirstRequests("system", (), OTHERWISE)
        self._retrying: Retrying | None = None
        self._session: Any = None

    async def ask(self, query: Query) -> tuple[Any, float] | CallError:
        """See :class:`OpenSystem`."""
        retrying = self._retrying or self._open()

        async def once() -> tuple[Any, float]:
            began = time.perf_counter()
            async with self._session.post(self.url, json=self._sent(query), headers=self._headers) as response:
                value = network.json_of(response, await response.text(errors="replace"))
            return _of_chat(value) if self._is_chat else value, time.perf_counter() - began

        return await retrying.persist(once, 0)

    def _open(self) -> Retrying:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=self._timeout)
        connector = aiohttp.TCPConnector(limit=self._concurrency)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=True)
        gate = Gate(self._concurrency)
        self._retrying = Retrying(gate, self._tries, WAIT, self._first, lambda: self._secrets, WORDS)
        return self._retrying

    def _sent(self, query: Query) -> dict[str, Any]:
        if not self._is_chat:
            return asdict(Question.of(query))
        asked = f"Asked on: {query.time}\n" if "T" in (query.time or "") else ""  # a time of day, as CRAG has it
        return {"model": self._model, "messages": [{"role": "user", "content": asked + query.text}]}

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = self._retrying = None


def _of_chat(value: Any) -> dict[str, Any]:
    """The reply in a chat completion.

    Raises:
        CallError: It holds none.
    """
    try:
        usage = value.get("usage") or {}
        used = {name: int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")}
        return {"answer": str(value["choices"][0]["message"]["content"] or ""), "usage": used}
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        raise CallError(f"the reply is no chat completion: {str(value)[:200]}") from None
