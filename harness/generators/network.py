"""Requests to a model behind an API: each is tried again where that may help, and fails alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.generators.first_requests import FirstRequests

REFUSED = (401, 403, 404)  # statuses that no other try and no other question can heal
AGAIN = (408, 409, 425, 429)  # and 500 and above: another try may help
LONGEST = 60.0  # seconds between two tries, at most


def each(
    call: Callable[[Any], Any], requests: Sequence[Any], *, width: int, tries: int, wait: float, first: FirstRequests
) -> list[Any | CallError]:
    """Every call in a thread of its own; a CallError for one that fails to the end.

    Args:
        width: Threads.
        tries: How often a request is made at most.
        wait: Seconds before the second try, doubled before each further one; a longer ``Retry-After`` is kept to.
        first: Of the run: what came of its first requests.

    Raises:
        UserError: The server refuses us (401, 403, 404), nobody listens, or the run's first requests all failed alike:
            no question can be answered.
    """
    from requests import RequestException

    ended = Event()

    def one(request: Any) -> Any:
        for tried in range(1, tries + 1):
            try:
                reply = call(request)
                first.answered()
                return reply
            except (RequestException, CallError, *_clients_errors()) as error:
                hopeless = _hopeless(error, last=tried == tries)
                if hopeless:
                    ended.set()
                    raise hopeless from None
                if tried == tries or not _transient(error) or ended.wait(_pause(error, wait * 2 ** (tried - 1))):
                    alike = first.failed(_kind(error), _words(error)) if not ended.is_set() else None
                    if alike:
                        ended.set()
                        raise alike from None
                    return CallError(f"generator, try {tried} of {tries}: {_words(error)}")
        raise AssertionError("unreachable: the last try returns or raises")

    with ThreadPoolExecutor(width) as pool:
        try:
            return list(pool.map(one, requests))
        finally:
            ended.set()


def _clients_errors() -> tuple[type[Exception], ...]:
    """What a client library raises in place of requests' exceptions: litellm's errors are openai's."""
    openai = sys.modules.get("openai")
    return (openai.OpenAIError,) if openai else ()


def _hopeless(error: Exception, *, last: bool) -> UserError | None:
    """What ends the run: a refusal at once, and a server that nobody can reach after the last try."""
    from requests import ConnectionError
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    if _status(error) in REFUSED:
        return UserError(
            f"The generator's server refused the request: {_words(error)}. Check the base URL, the model's name "
            "and the key in the environment (such as OPENAI_API_KEY). The same command again asks only what is missing."
        )
    reason = getattr(error.args[0], "reason", None) if error.args else None
    if last and isinstance(error, ConnectionError) and isinstance(reason, (NewConnectionError, ConnectTimeoutError)):
        return UserError(
            f"The generator's server cannot be reached: {reason}. Check the base URL and that the server runs. "
            "The same command again asks only what is missing."
        )
    return None


def _kind(error: Exception) -> str:
    """What makes two failures alike: the status, or the type."""
    return str(_status(error) or type(error).__name__)


def _status(error: Exception) -> int | None:
    told: int | None = getattr(getattr(error, "response", None), "status_code", getattr(error, "status_code", None))
    return told


def _transient(error: Exception) -> bool:
    """Whether another try may help: what failed on the way, some statuses, and replies without text."""
    status = _status(error)
    return status is None or status in AGAIN or status >= 500


def _pause(error: Exception, wait: float) -> float:
    """Seconds before the next try."""
    told = getattr(getattr(error, "response", None), "headers", {}).get("Retry-After", "")
    return min(LONGEST, max(wait, float(told) if told.isdigit() else 0.0))


def _words(error: Exception) -> str:
    """The error, and what the server said; not about keys, which it may repeat."""
    from requests import RequestException

    if not isinstance(error, (RequestException, CallError)):  # its text holds what the server said
        return f"{type(error).__name__}" if _status(error) in (401, 403) else " ".join(str(error).split())[:300]
    response = getattr(error, "response", None)
    said = "" if response is None or response.status_code in (401, 403) else response.text.strip()[:200]
    return f"{error}{': ' + said if said else ''}"
