"""What a generator is to a method: text in, text out, some tokens of room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from lm_eval_rag.harness.common.errors import CallError

BYTES_PER_TOKEN = 3  # a cautious guess where a model does not tell its tokens
ANNOUNCED = re.compile(r"(?:the\s+)?(?:final\s+)?answer", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a continuation is drawn.

    Args:
        max_tokens: The most tokens of a continuation, 1 or more, whatever the checkpoint's own files say.
        stop: Strings that end it (they are not part of it).
        temperature: 0 is greedy: the same text in any batch. Above it, sample n of a prompt is drawn by seed and n.
        thinking: Whether what a model thinks (``<think>``) stays in the text, as it wrote it.
        alternatives: How many of the likeliest first tokens are wanted, of a model that gives log-probabilities of its
            replies.
        chat: Whether the reply is a message of a chat. Then a stop string of white space, such as the line break of a
            task, ends it only behind some text: a message may begin with a line break, or with a line that announces
            the answer ("**Answer:**"). In raw text that is a blank reply.
    """

    max_tokens: int = 32
    stop: tuple[str, ...] = ("\n",)
    temperature: float = 0.0
    thinking: bool = False
    alternatives: int = 0
    chat: bool = False

    @property
    def sent(self) -> tuple[str, ...]:
        """The stop strings for whoever writes: in a chat not those of white space, at which the text is cut here."""
        return tuple(stop for stop in self.stop if not (self.chat and stop.isspace()))


@dataclass(frozen=True, slots=True)
class Completion:
    """A continuation, and how it ended.

    Args:
        text: Without the stop string, and without the model's thinking unless the decoding keeps it.
        finish: ``stop``, ``length`` (truncated at max_tokens), ``content_filter``, or "" where the model does not say.
        thinking: What a reasoning model wrote before its answer, apart from it.
        prompt_tokens: As the model counted them; None where it does not say.
        completion_tokens: Likewise, thinking included.
        seconds: What it took, without the time it waited for its turn.
        tokens: (text, ln P) of each token from the text's first on, where the model gives log-probabilities with it.
        first: Likewise the likeliest tokens in the place of the first.
    """

    text: str
    finish: str = ""
    thinking: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    tokens: tuple[tuple[str, float], ...] = ()
    first: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> str | dict[str, Any]:
        """For the journal: the text alone where there is nothing else to say; seconds are kept beside it."""
        rest = {
            field.name: value
            for field in fields(self)
            if field.name != "seconds" and (value := getattr(self, field.name)) != field.default
        }
        return self.text if set(rest) <= {"text"} else rest

    @classmethod
    def from_json(cls, value: str | dict[str, Any], seconds: float = 0.0) -> Completion:
        """What :meth:`to_json` wrote."""
        return cls(value, seconds=seconds) if isinstance(value, str) else cls(**{"text": "", **value}, seconds=seconds)


class Stream(Protocol):
    """A generator that is asked many things at once, in one event loop; each reply comes when it is finished."""

    async def generate(self, prompt: str, decoding: Decoding, sample: int) -> Completion | CallError:
        """One continuation; ``sample`` numbers the continuations of one prompt, from 0."""
        ...

    async def loglikelihood(self, prompt: str, continuation: str) -> tuple[float, float] | CallError:
        """ln P(continuation | prompt), and the seconds it took."""
        ...

    async def close(self) -> None:
        """Give up connections; the stream is not used after."""
        ...


def cut(text: str, decoding: Decoding) -> str:
    """The text up to the first stop string: some servers do not know ``stop``, chat APIs take four at most."""
    start = _opening(text) if decoding.chat else 0
    places = [text.find(stop, start if stop.isspace() else 0) for stop in decoding.stop if stop]
    return text[: min((place for place in places if place >= 0), default=len(text))]


def _opening(text: str) -> int:
    """How long the beginning is that has no text yet: blank lines, and lines that say that the answer follows."""
    length = 0
    for line in text.splitlines(keepends=True):
        words = line.strip(" \t\r\n*_`#")
        if words and not words.endswith((":", "：")) and not ANNOUNCED.fullmatch(words):
            break
        length += len(line)
    return length


def answered_before(generator: Generator) -> None:
    """Tell a generator that it answered in an earlier run: then its first failures are no sign of a wrong argument."""
    note = getattr(generator, "note_answered", None)
    if note is not None:
        note()


class Generator(Protocol):
    """A language model behind two methods; its prompts are plain text.

    Optional: ``stream()`` gives a :class:`Stream` through which it is asked, in place of batches; ``load()`` makes it
    ready; ``streams`` is true where each ask goes out at once; ``gives_loglikelihood`` is false where ``loglikelihood``
    cannot be served, ``gives_logs`` true where its completions have log-probabilities, ``thinks`` where it thinks
    before it answers; ``continues`` is true where a reply that a prompt begins stands in the model's turn of a chat;
    ``as_written(prompt, continuation)`` gives the continuation that is scored for one that begins with a space.

    Attributes:
        fingerprint: Names everything its output depends on; no secrets.
        batch: How many prompts it likes to be given at once.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def batch(self) -> int: ...

    def generate(
        self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]
    ) -> Sequence[str | Completion | CallError]:
        """One continuation a prompt; ``samples`` number the continuations of one prompt, from 0."""
        ...

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float | CallError]:
        """ln P(continuation | prompt) of each (prompt, continuation)."""
        ...

    def count_tokens(self, text: str) -> int | None:
        """Its length in the model's tokens; None when the model does not say (a chat API)."""
        ...

    def room(self, max_tokens: int) -> int | None:
        """Tokens left for a prompt when ``max_tokens`` are to be written; None for no known limit."""
        ...
