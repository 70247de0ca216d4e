"""The asks of a generator: continuations and log-probabilities, each through the journal when its reply arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Generate, HasLoglikelihood, Loglikelihood, Logs
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.journal import Call, Journal, Reply
from lm_eval_rag.harness.core.loop import Workers
from lm_eval_rag.harness.core.prompts import Messages, Prompt
from lm_eval_rag.harness.core.types import Query, Step
from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.harness.generators.base import Completion, Decoding, Generator, Stream, answered_before
from lm_eval_rag.harness.generators.batched import stream_of
from lm_eval_rag.harness.generators.extractive import Grounded, Sources
from lm_eval_rag.harness.generators.fit import Fitted, check_version, fit

NO_TEXT = {  # how a continuation without text ended -> why there is none, and what to do
    "length": (
        "the reply was truncated before any text; give more tokens: gen_thinking_tokens=4096 to a model that thinks "
        "first, else the method's own limit (its parameters *_tokens) or --gen_kwargs max_gen_toks=N"
    ),
    "content_filter": "the server's content filter withheld the reply",
}

STOPPED = (
    "the model thought and gave no answer: a stop string or the token limit of the answer ended its thought. "
    "gen_thinking_tokens=4096 gives it room, and sends no stop strings"
)


@dataclass(slots=True)
class OpenStream:
    """A generator's one stream in a run, shared by all who ask it; opened with the first ask and closed with the run.

    One, because requests share the limits of their server, and a local model is not asked from two threads at once.
    """

    generator: Generator
    _stream: Stream | None = field(default=None, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    @property
    def gather(self) -> int:
        """As many asks as one batch of the generator holds; 0 for a server or an engine, which take each at once."""
        return 0 if getattr(self.generator, "streams", False) else self.generator.batch

    async def open(self, prompt: Prompt | str) -> Stream:
        """The stream for a prompt; a model is loaded in a thread, so that an interrupt need not wait for it.

        Raises:
            UserError: The generator was tuned on prompts of another version; said before it is loaded.
        """
        if isinstance(prompt, Prompt):
            check_version(prompt.template.version, getattr(self.generator, "prompt_version", None))
        async with self._opening:
            if self._stream is None:
                load = getattr(self.generator, "load", None)
                if load is not None:
                    loader = Workers()
                    await loader.call(load)
                    loader.close()
                self._stream = stream_of(self.generator)
        return self._stream

    async def close(self) -> None:
        """Close it, if it was opened and nobody has closed it."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            await stream.close()


@dataclass(slots=True)
class _Streaming:
    """What serves asks of a generator through its stream."""

    stream: OpenStream

    @property
    def generator(self) -> Generator:
        """The model."""
        return self.stream.generator

    @property
    def gather(self) -> int:
        """See :attr:`OpenStream.gather`."""
        return self.stream.gather

    async def close(self) -> None:
        """Close the stream."""
        await self.stream.close()


@dataclass(slots=True)
class GenerateBackend(_Streaming):
    """Serves Generate.

    Args:
        journal: Keeps every reply as it arrives.
        decoding: What an ask that leaves it open gets: the task's ``until``, ``max_gen_toks`` and temperature.
        limit: The most tokens of a prompt (``max_prompt_tokens``).
    """

    journal: Journal = field(default_factory=lambda: Journal(None))
    decoding: Decoding = field(default_factory=Decoding)
    limit: int | None = None

    async def answer(self, query: Query, ask: Generate) -> Served | CallError:
        """The samples of an ask, as a tuple of texts."""
        stream, decoding = await self.stream.open(ask.prompt), self._decoding(ask)
        fitted = fit(ask.prompt, self.generator, decoding.max_tokens, self.limit)
        if isinstance(fitted, CallError):
            return fitted
        first = query.repeat * ask.n if decoding.temperature > 0 else 0  # repeat r starts at sample r * n
        samples, text = range(first, first + ask.n), self._grounded(ask.prompt, fitted)
        replies = await asyncio.gather(*(self._sample(stream, text, decoding, sample) for sample in samples))
        for reply in replies:
            if isinstance(reply, CallError):
                return reply
        return self._served(fitted, [reply for reply in replies if isinstance(reply, Reply)])

    def _grounded(self, prompt: Prompt | str, fitted: Fitted) -> str:
        """The text that is sent; an extractive generator gets the documents in it, too."""
        if isinstance(prompt, str) or not getattr(self.generator, "extractive", False):
            return fitted.text
        return Grounded(fitted.text, Sources.of(fitted.shown))

    def _decoding(self, ask: Generate) -> Decoding:
        return Decoding(
            max_tokens=self.decoding.max_tokens if ask.max_tokens is None else ask.max_tokens,
            stop=self.decoding.stop if ask.stop is None else ask.stop,
            temperature=self.decoding.temperature if ask.temperature is None else ask.temperature,
            thinking=ask.thinking,
            alternatives=ask.alternatives if getattr(self.generator, "gives_logs", False) else 0,
            chat=getattr(self.generator, "chat", False),
        )

    async def _sample(self, stream: Stream, prompt: str, decoding: Decoding, sample: int) -> Reply | CallError:
        request: list[object] = ["generate", decoding.max_tokens, list(decoding.stop), decoding.temperature, prompt]
        request += _begun_in(prompt, self.generator)
        request += ["thinking"] if decoding.thinking else []
        request += ["white space is cut here"] if decoding.sent != decoding.stop else []  # until then it was sent
        request += [{"alternatives": decoding.alternatives}] if decoding.alternatives else []
        if isinstance(prompt, Grounded):
            request += [list(prompt.sources.names), list(prompt.sources.texts)]

        async def compute() -> tuple[object, float] | CallError:
            completion = await stream.generate(prompt, decoding, sample)
            return completion if isinstance(completion, CallError) else (completion.to_json(), completion.seconds)

        reply = await self.journal.call(Call(self.generator.fingerprint, request, sample), compute)
        if isinstance(reply, Reply) and reply.journalled:
            answered_before(self.generator)
        return reply

    def _served(self, fitted: Fitted, replies: Sequence[Reply]) -> Served | CallError:
        completions = [Completion.from_json(reply.value, reply.seconds) for reply in replies]
        for completion in completions:
            if not completion.text and completion.finish in NO_TEXT:
                return CallError(NO_TEXT[completion.finish])
            if completion.thinking and not completion.text.strip() and not getattr(self.generator, "thinks", False):
                return CallError(STOPPED)
        texts = tuple(map(_text, completions))
        step = Step(
            "Generate",
            fitted.text,
            "\n".join(texts),
            seconds=sum(completion.seconds for completion in completions),
            prompt_tokens=sum(_known(c.prompt_tokens, fitted.tokens) for c in completions),
            completion_tokens=sum(
                _known(c.completion_tokens, self.generator.count_tokens(c.text) or 0) for c in completions
            ),
            dropped_passages=fitted.dropped,
            cut_passages=fitted.cut,
            journalled=all(reply.journalled for reply in replies),
            finishes=tuple(completion.finish for completion in completions),
            thinking="\n".join(completion.thinking for completion in completions if completion.thinking),
        )
        return Served(texts, step)


def _begun_in(prompt: str, generator: Generator) -> list[object]:
    """For the journal: where the user message ends and the reply begins, if that is how the text is sent."""
    text = prompt.prompt if isinstance(prompt, Grounded) else prompt
    if isinstance(text, Messages) and text.begun and getattr(generator, "continues", False):
        return [{"begun": [text.user_end, text.begun_at]}]
    return []


def _text(completion: Completion) -> str:
    """The text, with its log-probabilities where the model gave them."""
    return Written(completion.text, completion.tokens, completion.first) if completion.tokens else completion.text


def _known(count: int | None, guess: int) -> int:
    return guess if count is None else count


@dataclass(slots=True)
class LoglikelihoodBackend(_Streaming):
    """Serves Loglikelihood."""

    journal: Journal = field(default_factory=lambda: Journal(None))
    limit: int | None = None

    async def answer(self, query: Query, ask: Loglikelihood) -> Served | CallError:
        """ln P(continuation | prompt)."""
        stream = await self.stream.open(ask.prompt)
        longest = self.generator.count_tokens(ask.continuation) or len(ask.continuation)
        fitted = fit(ask.prompt, self.generator, longest, self.limit)
        if isinstance(fitted, CallError):
            return fitted
        as_written = getattr(self.generator, "as_written", lambda prompt, continuation: continuation)
        continuation = as_written(fitted.text, ask.continuation)
        request = ["loglikelihood", fitted.text, continuation, *_begun_in(fitted.text, self.generator)]
        reply = await self.journal.call(
            Call(self.generator.fingerprint, request), lambda: stream.loglikelihood(fitted.text, continuation)
        )
        if isinstance(reply, CallError):
            return reply
        step = Step(
            "Loglikelihood",
            fitted.text,
            str(reply.value),
            seconds=reply.seconds,
            prompt_tokens=fitted.tokens,
            dropped_passages=fitted.dropped,
            cut_passages=fitted.cut,
            journalled=reply.journalled,
        )
        return Served(float(reply.value), step)


@dataclass(frozen=True, slots=True)
class HasLoglikelihoodBackend:
    """Serves HasLoglikelihood; nothing is loaded for it."""

    generator: Generator
    batch: int = 4096

    def serve(self, asked: Sequence[tuple[Query, HasLoglikelihood]]) -> list[Served | CallError]:
        """Of any text, unless the generator says no; then of its replies if it says so, else none."""
        of_replies: Logs = "replies" if getattr(self.generator, "gives_logs", False) else ""
        gives: Logs = "texts" if getattr(self.generator, "gives_loglikelihood", True) else of_replies
        return [Served(gives, Step("HasLoglikelihood", "", gives or "none")) for _ in asked]
