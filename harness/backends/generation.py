"""The costly asks: continuations and log-probabilities of a generator, through the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Generate, Loglikelihood
from lm_eval_rag.harness.core.driver import Served
from lm_eval_rag.harness.core.journal import Call, Journal, Reply
from lm_eval_rag.harness.core.types import Query, Step
from lm_eval_rag.harness.generators.base import Decoding, Generator, answered_before
from lm_eval_rag.harness.generators.fit import Fitted, fit


@dataclass(frozen=True, slots=True)
class GenerateBackend:
    """Serves Generate.

    Args:
        decoding: What an ask that leaves it open gets: the task's ``until``, ``max_gen_toks`` and temperature.
        limit: The most tokens of a prompt (``max_prompt_tokens``).
    """

    generator: Generator
    journal: Journal
    decoding: Decoding = field(default_factory=Decoding)
    limit: int | None = None
    costly: bool = True

    @property
    def batch(self) -> int:
        """As many as the generator likes at once."""
        return self.generator.batch

    def serve(self, asked: Sequence[tuple[Query, Generate]]) -> list[Served | CallError]:
        """The samples of each ask, as a tuple of texts."""
        groups: dict[Decoding, list[int]] = defaultdict(list)
        for i, (_, ask) in enumerate(asked):
            groups[self._decoding(ask)].append(i)
        served: dict[int, Served | CallError] = {}
        for decoding, positions in groups.items():
            served |= zip(positions, self._generate(decoding, [asked[i] for i in positions]), strict=True)
        return [served[i] for i in range(len(asked))]

    def _decoding(self, ask: Generate) -> Decoding:
        return Decoding(
            max_tokens=self.decoding.max_tokens if ask.max_tokens is None else ask.max_tokens,
            stop=self.decoding.stop if ask.stop is None else ask.stop,
            temperature=self.decoding.temperature if ask.temperature is None else ask.temperature,
        )

    def _generate(self, decoding: Decoding, asked: Sequence[tuple[Query, Generate]]) -> list[Served | CallError]:
        fitted = [fit(ask.prompt, self.generator, decoding.max_tokens, self.limit) for _, ask in asked]
        flat = [
            (i, fit_, draw)
            for i, ((query, ask), fit_) in enumerate(zip(asked, fitted, strict=True))
            if isinstance(fit_, Fitted)
            for draw in _draws(query, ask, decoding)
        ]
        request = ["generate", decoding.max_tokens, list(decoding.stop), decoding.temperature]
        fingerprint = self.generator.fingerprint
        calls = [Call(fingerprint, [*request, fit_.text], draw) for _, fit_, draw in flat]

        if self.journal.holds_any(calls):
            answered_before(self.generator)

        def compute(positions: list[int]) -> Sequence[Any]:
            prompts, draws = [flat[p][1].text for p in positions], [flat[p][2] for p in positions]
            return self.generator.generate(prompts, decoding, draws)

        replies: dict[int, list[Reply | CallError]] = defaultdict(list)
        for (i, _, _), reply in zip(flat, self.journal.serve(calls, compute, self.batch), strict=True):
            replies[i].append(reply)
        return [self._served(fit_, replies[i]) for i, fit_ in enumerate(fitted)]

    def _served(self, fitted: Fitted | CallError, replies: Sequence[Reply | CallError]) -> Served | CallError:
        if isinstance(fitted, CallError):
            return fitted
        for reply in replies:
            if isinstance(reply, CallError):
                return reply
        done = [reply for reply in replies if isinstance(reply, Reply)]
        texts = tuple(str(reply.value) for reply in done)
        step = Step(
            "Generate",
            fitted.text,
            "\n".join(texts),
            seconds=sum(reply.seconds for reply in done),
            prompt_tokens=fitted.tokens * len(done),
            completion_tokens=sum(self.generator.count_tokens(text) or 0 for text in texts),
            dropped_passages=fitted.dropped,
            journalled=all(reply.journalled for reply in done),
        )
        return Served(texts, step)


def _draws(query: Query, ask: Generate, decoding: Decoding) -> range:
    """The numbers of an ask's draws: when sampling, those of a repeated question go on after those before it."""
    first = query.repeat * ask.n if decoding.temperature > 0 else 0
    return range(first, first + ask.n)


@dataclass(frozen=True, slots=True)
class LoglikelihoodBackend:
    """Serves Loglikelihood."""

    generator: Generator
    journal: Journal
    limit: int | None = None
    costly: bool = True

    @property
    def batch(self) -> int:
        """As many as the generator likes at once."""
        return self.generator.batch

    def serve(self, asked: Sequence[tuple[Query, Loglikelihood]]) -> list[Served | CallError]:
        """ln P(continuation | prompt) of each ask."""
        fitted = []
        for _, ask in asked:
            longest = self.generator.count_tokens(ask.continuation) or len(ask.continuation)
            fitted.append(fit(ask.prompt, self.generator, longest, self.limit))
        good = [i for i, fit_ in enumerate(fitted) if isinstance(fit_, Fitted)]
        pairs = [(getattr(fitted[i], "text", ""), asked[i][1].continuation) for i in good]
        fingerprint = self.generator.fingerprint
        calls = [Call(fingerprint, ["loglikelihood", *pair]) for pair in pairs]

        def compute(positions: list[int]) -> Sequence[Any]:
            return self.generator.loglikelihood([pairs[p] for p in positions])

        replies = dict(zip(good, self.journal.serve(calls, compute, self.batch), strict=True))
        return [_value(fit_, replies.get(i)) for i, fit_ in enumerate(fitted)]


def _value(fitted: Fitted | CallError, reply: Reply | CallError | None) -> Served | CallError:
    if isinstance(fitted, CallError):
        return fitted
    if not isinstance(reply, Reply):
        return reply or CallError("no reply")
    step = Step(
        "Loglikelihood",
        fitted.text,
        f"{reply.value}",
        seconds=reply.seconds,
        prompt_tokens=fitted.tokens,
        dropped_passages=fitted.dropped,
        journalled=reply.journalled,
    )
    return Served(float(reply.value), step)
