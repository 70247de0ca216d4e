"""A client of the mock API's server: POST with JSON, many calls at once, each with a time limit."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from lm_eval_rag.harness.common.errors import CallError, UserError, at_least
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.kg.functions import bind_arguments, body, function_named

MAX_REPLY = 64 << 20  # bytes; the longest real reply known (a day of minute prices) has a quarter of a megabyte
CHUNK = 1 << 16
NO_DATA = 501  # our server's status for a function without data
LONGEST_PAUSE = 10.0  # seconds, whatever Retry-After says


class _TryAgainError(Exception):
    """A failure that may go away; ``pause`` is the server's wish, in seconds."""

    def __init__(self, what: str, pause: float = 0.0) -> None:
        super().__init__(what)
        self.pause = pause


@dataclass(frozen=True)
class HttpGraph:
    """The functions of a server.

    Args:
        url: Its address, such as ``http://localhost:8000``.
        concurrency: Calls in flight at once.
        timeout: Seconds of one try, from the connection to the last byte of the reply.
        tries: Tries of a call. Another try follows the statuses 429 and 5xx (but not 501), a broken connection, a
            timeout, and a reply that is cut or is not the JSON object ``{"result": ...}``; other statuses fail at once.
        pause: Seconds before the second try, doubled before each later one; at least the server's Retry-After, at most
            10.
    """

    url: str
    concurrency: int = 8
    timeout: float = 20.0
    tries: int = 3
    pause: float = 0.5

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"kg={self.url!r} is not an address: give http://HOST:PORT or https://HOST.")
        at_least("concurrency", self.concurrency)
        at_least("tries", self.tries)

    @property
    def fingerprint(self) -> str:
        """The address: another server may hold other data."""
        return f"kg {self.url.rstrip('/')}"

    def call(self, calls: Sequence[Lookup]) -> list[Any | CallError]:
        """The reply to each call, in order; a CallError for a call that is not allowed or failed every time.

        Raises:
            UserError: Before the first call: nothing answers at the address.
        """
        if not calls:
            return []
        self._answers  # noqa: B018 - raises
        with ThreadPoolExecutor(1) as pool:  # the caller may have an event loop of its own (a notebook)
            return pool.submit(asyncio.run, self._call_all(calls)).result()

    @cached_property
    def _answers(self) -> bool:
        """That something answers at the address, asked once, so that a wrong one does not fail question by question."""
        try:
            with _without_proxies().open(self.url, timeout=self.timeout):
                return True
        except urllib.error.HTTPError:  # an answer
            return True
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise UserError(
                f"kg={self.url} does not answer: {reason}. Start the server (`lm-eval-rag serve-kg DIR`), or give its "
                "address, or a folder of CRAG's files."
            ) from None

    async def _call_all(self, calls: Sequence[Lookup]) -> list[Any | CallError]:
        import aiohttp

        slots = asyncio.Semaphore(self.concurrency)
        limit = aiohttp.ClientTimeout(total=self.timeout)
        connector = aiohttp.TCPConnector(limit=self.concurrency)
        async with aiohttp.ClientSession(timeout=limit, connector=connector) as session:
            return list(await asyncio.gather(*(self._call_one(session, slots, call) for call in calls)))

    async def _call_one(self, session: Any, slots: asyncio.Semaphore, call: Lookup) -> Any | CallError:
        try:
            function = function_named(call.function)
            sent = body(function, bind_arguments(function, dict(call.arguments)))
        except UserError as error:
            return CallError(str(error))
        async with slots:
            for attempt in range(self.tries):
                try:
                    return await self._once(session, self.url.rstrip("/") + function.path, sent)
                except _TryAgainError as error:
                    failure = error
                if attempt + 1 < self.tries:
                    await asyncio.sleep(min(LONGEST_PAUSE, max(failure.pause, self.pause * 2**attempt)))
        return CallError(f"{function.name}: {self.url} failed {self.tries} times; last error: {failure}")

    async def _once(self, session: Any, address: str, sent: dict[str, Any]) -> Any | CallError:
        """One try.

        Raises:
            _TryAgainError: It failed, and another try may not.
        """
        import aiohttp

        try:
            async with session.post(address, json=sent, allow_redirects=False) as response:
                if response.status == 429 or (response.status >= 500 and response.status != NO_DATA):
                    raise _TryAgainError(f"status {response.status}", _seconds(response.headers.get("Retry-After")))
                content = await _read(response)
                if content is not None and response.status != 200:
                    return CallError(f"{address}: status {response.status}, {content[:200].decode(errors='replace')}")
        except TimeoutError:
            raise _TryAgainError(f"no whole reply within {self.timeout} seconds") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _TryAgainError(f"{type(error).__name__}: {error}") from None
        if content is None:
            return CallError(f"{address}: the reply is longer than {MAX_REPLY >> 20} MiB")
        return _result(content)


def _without_proxies() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


async def _read(response: Any) -> bytes | None:
    """The reply's content; None if it is too long, and then the rest is not read."""
    parts, size = [], 0
    async for part in response.content.iter_chunked(CHUNK):
        parts.append(part)
        size += len(part)
        if size > MAX_REPLY:
            return None
    return b"".join(parts)


def _result(content: bytes) -> Any:
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        raise _TryAgainError(f"not JSON: {content[:80]!r}") from None
    if not isinstance(reply, dict) or "result" not in reply:
        raise _TryAgainError(f"not an object with a 'result': {content[:80]!r}")
    return reply["result"]


def _seconds(retry_after: str | None) -> float:
    try:
        return max(0.0, float(retry_after or 0))
    except ValueError:  # a date; our own pause is used
        return 0.0
