"""What goes wrong on the way to a server: what it means, whether another try may help, and how to say it."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from lm_eval_rag.harness.common.errors import CallError

REFUSED = (401, 402, 403, 404)  # statuses that no other try and no other question can heal
AGAIN = (408, 409, 425, 429)  # and 500 and above: another try may help
OVERLOADED = (429, 503, 529)  # the server asks everybody to wait
LONGEST = 60.0  # seconds between two tries, at most, unless the server asks for more
LONGEST_ASKED = 600.0  # seconds of a Retry-After that are kept to, at most
KEYED = ("authorization", "x-api-key", "api-key")  # headers that hold a key
SHOWN = 300  # characters of what a server said


class StatusError(Exception):
    """The server answered with a status of 400 or above."""

    def __init__(self, status: int, reason: str, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"{status} {reason}")
        self.status, self.text, self.headers = status, text, headers


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request failed.

    Args:
        words: What happened, without any key.
        kind: What makes two failures alike: the status, or the error's type.
        transient: Whether another try may help.
        hopeless: Whether no question can be answered.
        unreachable: Whether nobody listens.
        overloaded: Whether all requests should wait.
        retry_after: Seconds that the server asks to wait; 0 where it does not say.
    """

    words: str
    kind: str = ""
    transient: bool = True
    hopeless: bool = False
    unreachable: bool = False
    overloaded: bool = False
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class ServerWords:
    """What messages say of a server.

    Args:
        name: What it is, such as ``generator``.
        check: What to look at if it refuses or cannot be reached.
        look: What to look at if many requests fail alike.
        timeout: The argument that says how long a reply may take.
    """

    name: str
    check: str
    look: str
    timeout: str = "gen_timeout="

    def advice(self, problem: Problem) -> str:
        """The message that ends the run."""
        again = "The same command again asks only what is missing."
        if problem.hopeless or problem.unreachable:
            what = "cannot be reached" if problem.unreachable else "refused the request"
            return f"The {self.name}'s server {what}: {problem.words}. Check {self.check}. {again}"
        return (
            f"Many requests in a row failed alike at the {self.name}'s server: {problem.words}. Look at {self.look}. "
            f"{again}"
        )


GENERATOR = ServerWords(
    "generator",
    "gen_base_url=, gen_model=, the key in the environment (such as OPENAI_API_KEY) and that the server runs",
    "its log, at gen_model=, gen_base_url= and the length of the prompts (max_prompt_tokens=)",
)


def errors() -> tuple[type[Exception], ...]:
    """What sending a request may raise: ours, the HTTP library's, and openai's, which litellm raises."""
    import aiohttp

    openai = sys.modules.get("openai")
    mine = (StatusError, CallError)
    return (*mine, aiohttp.ClientError, asyncio.TimeoutError, OSError, *((openai.OpenAIError,) if openai else ()))


def problem_of(error: Exception, secrets: Sequence[str] = (), server: ServerWords = GENERATOR) -> Problem:
    """What an error means.

    Args:
        secrets: Texts that must not be repeated.
        server: What messages call it and its arguments.
    """
    import aiohttp

    status = getattr(error, "status", None) or getattr(error, "status_code", None)
    kind = str(status or type(error).__name__)
    words = _redacted(_words(error, status, server.timeout), secrets)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return Problem(words, kind, unreachable=True)
    if not isinstance(status, int):
        return Problem(words, kind)
    return Problem(
        words,
        kind,
        transient=status in AGAIN or status >= 500,
        hopeless=status in REFUSED,
        overloaded=status in OVERLOADED,
        retry_after=retry_after(getattr(error, "headers", None) or {}),
    )


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float:
    """Seconds that a ``Retry-After`` header asks to wait: a number, also a fraction, or an HTTP date; 0 for none."""
    value = headers.get("Retry-After", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now)
        except (TypeError, ValueError):
            return 0.0
    return min(LONGEST_ASKED, max(0.0, seconds)) if seconds == seconds else 0.0  # NaN is no number


def session(lm: Any, width: int) -> Any:
    """An HTTP client with the time-out and the certificates of an lm_eval model; proxies are the environment's."""
    import aiohttp

    own = getattr(lm, "ca_cert_path", None)
    certificates: Any = ssl.create_default_context(cafile=own) if own else bool(lm.verify_certificate)
    connector = aiohttp.TCPConnector(limit=width, ssl=certificates)
    timeout = aiohttp.ClientTimeout(total=lm.timeout)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=True)


def json_of(response: Any, text: str) -> Any:
    """The JSON of a response.

    Raises:
        StatusError: It has a status of 400 or above.
        CallError: It is no JSON.
    """
    if response.status >= 400:
        raise StatusError(response.status, response.reason or "", text, response.headers)
    try:
        return json.loads(text)
    except ValueError:
        raise CallError(f"the reply is no JSON: {text[:SHOWN]!r}") from None


def secrets(lm: Any) -> list[str]:
    """The keys that an lm_eval model sends; no message may repeat them."""
    try:
        sent = {**lm.header, "api-key": lm.api_key}
    except ValueError:  # there is none
        return []
    keys = [str(value).removeprefix("Bearer ") for name, value in sent.items() if name.lower() in KEYED and value]
    return [key for key in keys if key.strip()]


def _words(error: Exception, status: Any, timeout: str) -> str:
    if isinstance(error, StatusError):
        said = "" if error.status in (401, 403) else " ".join(error.text.split())[:SHOWN]  # it may repeat the key
        return f"{error}: {said}".rstrip(": ")
    if isinstance(error, asyncio.TimeoutError):
        return f"no reply within {timeout} seconds"
    text = " ".join(str(error).split())[:SHOWN]
    if status is not None:  # openai's, which hold what the server said
        return type(error).__name__ if status in (401, 403) else text
    return text if isinstance(error, CallError) else f"{type(error).__name__}: {text}".rstrip(": ")


def _redacted(words: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        words = words.replace(secret, "[key]")
    return words
