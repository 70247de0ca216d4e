"""What a generator is to a method: text in, text out, some tokens of room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lm_eval_rag.harness.common.errors import CallError

BYTES_PER_TOKEN = 3  # a cautious guess where a model does not tell its tokens


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a continuation is drawn.

    Args:
        max_tokens: The most tokens of a continuation, 1 or more, whatever the checkpoint's own files say.
        stop: Strings that end it (they are not part of it).
        temperature: 0 is greedy: the same text in any batch. Above it, sample n of a prompt is drawn by seed and n.
    """

    max_tokens: int = 32
    stop: tuple[str, ...] = ("\n",)
    temperature: float = 0.0


def cut(text: str, stops: Sequence[str]) -> str:
    """The text up to the first stop string: some servers do not know ``stop``, chat APIs take four at most."""
    return text[: min((text.find(stop) for stop in stops if stop and stop in text), default=len(text))]


def answered_before(generator: Generator) -> None:
    """Tell a generator that it answered in an earlier run: then its first failures are no sign of a wrong argument."""
    note = getattr(generator, "note_answered", None)
    if note is not None:
        note()


class Generator(Protocol):
    """A language model behind two methods; its prompts are plain text.

    Attributes:
        fingerprint: Names everything its output depends on; no secrets.
        batch: How many prompts it likes to be given at once.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def batch(self) -> int: ...

    def generate(self, prompts: Sequence[str], decoding: Decoding, draws: Sequence[int]) -> Sequence[str | CallError]:
        """One continuation a prompt; ``draws`` number the samples of one prompt (0 for the first)."""
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
