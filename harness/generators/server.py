"""A model behind an API as a stream: many requests at once, each tried again where that may help, each failing alone.

lm_eval's model makes the payload and names the address and the headers; sending, waiting and trying again are ours,
since lm_eval's own concurrent path drops every answer of a batch when one request of it fails.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import re
import time
from collections.abc import Callable, Coroutine
from functools import cache, cached_property
from typing import Any, TypeVar

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.loop import MOMENT, Workers
from lm_eval_rag.harness.generators import network
from lm_eval_rag.harness.generators.base import BYTES_PER_TOKEN, Completion, Decoding
from lm_eval_rag.harness.generators.first_requests import FirstRequests
from lm_eval_rag.harness.generators.fleet import Fleet
from lm_eval_rag.harness.generators.gate import Gate
from lm_eval_rag.harness.generators.replies import completion_of
from lm_eval_rag.harness.generators.reply_logs import LOOKED_AT, NONE
from lm_eval_rag.harness.generators.retrying import Retrying
from lm_eval_rag.harness.generators.spec import ModelSpec

log = logging.getLogger(__name__)
T = TypeVar("T")


def with_ids(lm: Any) -> Any:
    """The same model behind the same API, sending token ids: log-probabilities need the exact tokens."""
    twin = copy.copy(lm)
    twin.tokenized_requests = True
    return twin


REASONING = re.compile(r"(^|/)(o\d|gpt-5)")  # OpenAI's models that take neither a temperature nor stop strings
PLAIN = "plain"  # a name that says nothing


def as_named(lm: Any) -> Any:
    """The model that makes a payload: itself, or its twin with a name that says nothing.

    lm_eval takes every OpenAI model with a 5, o1, o3 or o4 in its name for one that reasons, and sends it temperature 1
    and no stop strings: also gpt-3.5-turbo, or Qwen2.5 behind a server of one's own.
    """
    from lm_eval.models.openai_completions import OpenAIChatCompletion

    if not isinstance(lm, OpenAIChatCompletion):
        return lm
    if REASONING.search(str(lm.model)):
        _warn_of_temperature(str(lm.model))
        return lm
    twin = copy.copy(lm)
    twin.model = PLAIN
    return twin


@cache
def _warn_of_temperature(model: str) -> None:
    """Say once of a model that it is asked otherwise than the method says."""
    log.warning(
        "%s takes neither a temperature nor stop strings: lm_eval sends it temperature 1, so that its replies differ "
        "from run to run, and each reply is cut at the stop strings here.",
        model,
    )


class Server:
    """The stream of one lm_eval model behind an API.

    Args:
        lm: The lm_eval model, a ``TemplateAPI``.
        spec: What it was built from: how many requests at once and how often, addresses, what replies have.
        wrap: Makes of a prompt what is sent: a text, or messages.
        options: The generation arguments of a decoding and a sample index, as lm_eval names them.
        first: Of the run: what came of its first requests.
    """

    def __init__(
        self,
        lm: Any,
        spec: ModelSpec,
        wrap: Callable[[str], Any],
        options: Callable[[Decoding, int], dict[str, Any]],
        first: FirstRequests,
    ) -> None:
        self.lm, self.wrap, self.options, width, urls = lm, wrap, options, spec.width, spec.urls
        self.width, self.logs, self.thinks = width, spec.logprobs, spec.thinking_tokens > 0
        self._bare: int | None = 0  # replies without log-probabilities, until one has them
        gate = Gate(width, spec.arguments.get("rpm"), spec.arguments.get("tpm"))
        self.retrying = Retrying(gate, spec.tries, spec.retry_wait, first, lambda: network.secrets(lm))
        self.probable = lm if spec.arguments.get("tokenized_requests") is False else with_ids(lm)
        self._session: Any = None
        self._fleet: Fleet | None = None
        if len(urls) > 1:
            self._fleet = Fleet(urls, width // len(urls), spec.retry_wait, lambda: network.secrets(lm))

    async def generate(self, prompt: str, decoding: Decoding, sample: int) -> Completion | CallError:
        """One continuation.

        Raises:
            UserError: The server refuses us or cannot be reached, too many requests failed alike, or log-probabilities
                were asked for and the first replies have none.
        """
        options = self.options(decoding, sample)
        wrapped = self.wrap(prompt)
        message = self.lm.tok_encode(wrapped) if self.lm.tokenized_requests else wrapped

        async def once() -> Completion:
            reply, seconds = await self._send(self.lm, prompt, [message], generate=True, gen_kwargs=options)
            return completion_of(self.lm, reply, decoding, seconds, self.logs, self.thinks)

        reply = await self.retrying.persist(once, len(prompt.encode()) // BYTES_PER_TOKEN + decoding.max_tokens)
        if self.logs and isinstance(reply, Completion) and reply.text.strip():
            self._look(reply)
        return reply

    def _look(self, reply: Completion) -> None:
        """End a run whose replies all come without the log-probabilities that it asks for."""
        if reply.tokens or self._bare is None:
            self._bare = None
            return
        self._bare += 1
        if self._bare == LOOKED_AT:
            raise UserError(f"The first {LOOKED_AT} replies of the generator's server tell no probabilities: {NONE}")

    async def loglikelihood(self, prompt: str, continuation: str) -> tuple[float, float] | CallError:
        """ln P(continuation | prompt), and the seconds it took; raises as ``generate``."""
        pair, lm = (self.wrap(prompt), continuation), self.probable
        inputs, lengths, _ = lm.batch_loglikelihood_requests([[(pair, *lm._encode_pair(*pair))]])

        async def once() -> tuple[float, float]:
            reply, seconds = await self._send(lm, prompt, inputs, generate=False)
            try:
                return float(lm.parse_logprobs(outputs=reply, tokens=inputs, ctxlens=lengths)[0][0]), seconds
            except (KeyError, IndexError, TypeError):
                raise CallError(f"the reply holds no log-probabilities: {str(reply)[:200]}") from None

        return await self.retrying.persist(once, len((prompt + continuation).encode()) // BYTES_PER_TOKEN)

    async def _send(self, lm: Any, prompt: str, messages: list[Any], **options: Any) -> tuple[Any, float]:
        """The JSON of the reply to one request, and the seconds it took."""
        if self._calls_itself:
            began = time.perf_counter()
            reply = await self._workers.call(lambda: lm.model_call(messages=messages, **options))
            return reply, time.perf_counter() - began
        generate = {"gen_kwargs": copy.deepcopy(options["gen_kwargs"])} if options["generate"] else {}
        payload = as_named(lm)._create_payload(
            lm.create_message(messages),
            generate=options["generate"],
            **generate,
            seed=lm._seed,
            eos=lm.eos_string,
        )
        payload |= {"model": lm.model} if "model" in payload else {}
        if self._session is None:
            self._session = network.session(self.lm, self.width)
        if self._fleet is None:
            return await _kept(self._post(lm, payload, self.lm.base_url))
        return await self._fleet.send(prompt, lambda url: _kept(self._post(lm, payload, url)))

    async def _post(self, lm: Any, payload: dict[str, Any], url: str) -> tuple[Any, float]:
        began = time.perf_counter()
        async with self._session.post(url, json=payload, headers=self.lm.header) as response:
            text = await response.text(errors="replace")
            return network.json_of(response, text), time.perf_counter() - began

    @cached_property
    def _calls_itself(self) -> bool:
        """Whether lm_eval's model sends its requests by a library of its own (litellm)."""
        from lm_eval.models.api_models import TemplateAPI

        return type(self.lm).model_call is not TemplateAPI.model_call

    @cached_property
    def _workers(self) -> Workers:
        return Workers(self.width)

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if "_workers" in self.__dict__:
            self._workers.close()


async def _kept(request: Coroutine[Any, Any, T]) -> T:
    """The reply to a request that was sent. Where the run ends meanwhile, it is waited for a moment: it is paid for."""
    sent = asyncio.ensure_future(request)
    try:
        return await asyncio.shield(sent)
    except asyncio.CancelledError:
        await asyncio.wait({sent}, timeout=MOMENT)
        if not sent.done() or sent.cancelled() or sent.exception() is not None:
            sent.cancel()
            raise
        return sent.result()
