"""Any lm_eval model as a generator, by composition: ``generator=hf,gen_pretrained=...``.

Limit, stop strings, temperature and seed are enforced here, whatever a checkpoint or a library does by default. Models
of transformers generate batch by batch (:mod:`~lm_eval_rag.harness.generators.local`), other local ones get all
requests at once. Models behind an API, and vLLM's engine, get many requests at once (``server``, ``stepped``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.common.extras import version
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.core.loop import run_async
from lm_eval_rag.harness.core.prompts import Messages
from lm_eval_rag.harness.generators.base import BYTES_PER_TOKEN, Completion, Decoding, Stream, cut
from lm_eval_rag.harness.generators.batched import Batched
from lm_eval_rag.harness.generators.build_lm import build, engine_errors, instance, quiet, stopped
from lm_eval_rag.harness.generators.chat import Form, as_chat, as_text, as_written, form_of
from lm_eval_rag.harness.generators.extractive import Grounded
from lm_eval_rag.harness.generators.first_requests import FirstRequests
from lm_eval_rag.harness.generators.local import complete_by_batches, is_plain
from lm_eval_rag.harness.generators.memory import BUILT
from lm_eval_rag.harness.generators.on_ray import OnRay
from lm_eval_rag.harness.generators.replies import local_completion
from lm_eval_rag.harness.generators.request_options import request_options
from lm_eval_rag.harness.generators.server import Server, with_ids
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.generators.stepped import Stepped
from lm_eval_rag.harness.generators.thinking import THOUGHT_START, warn_of_thoughts, with_room
from lm_eval_rag.harness.generators.turn_end import turn_end

log = logging.getLogger(__name__)
OWN_RULES = "own rules"  # in the fingerprint of hf models: until then generation_config.json and torch's seed had a say
TURN_ENDS = "turn ends"  # of vLLM's chats: until then a reply went on where the checkpoint did not name the turn's end
TOO_LONG = "sequence-length-is-longer-than-the-specified-maximum"  # transformers' key of a warning that is given once


class LMGenerator:
    """An lm_eval model, built when first needed.

    Args:
        spec: Which model, with which arguments.
        chat: Whether prompts go through the model's chat template, as one user message; None leaves it to the model
            (:func:`~lm_eval_rag.harness.generators.chat.form_of`).
        seed: Of sampled draws: draw n is made with seed + n.
        system: An instruction before every prompt: the system message of a chat, else the text's first paragraph.
    """

    def __init__(self, spec: ModelSpec, *, chat: bool | None = None, seed: int = 0, system: str | None = None) -> None:
        self.spec = spec
        self.asked_chat = chat
        self.seed = seed
        self.system = system
        self.extractive = spec.extractive  # whether a continuation is a span of the prompt's documents
        self.gives_logs = spec.logprobs  # whether its replies come with their log-probabilities
        self.thinks = spec.thinking_tokens > 0  # whether it thinks before it answers
        self._first = FirstRequests()
        self._forms: dict[bool | None, Form] = {}
        self._counted: dict[tuple[bool, str | None], int] = {}

    @cached_property
    def lm(self) -> Any:
        """The model itself; building it is what costs."""
        model = build(self.spec)
        tokenizer = vars(model).get("tokenizer")  # lm_eval's dummy downloads one when it is asked
        warned = getattr(tokenizer, "deprecation_warnings", {})
        warned[TOO_LONG] = True  # a long prompt is counted so that it is never sent
        BUILT.add(self)
        return model

    def load(self) -> None:
        """Build the model, if it is not built."""
        _ = self.lm

    @property
    def streams(self) -> bool:
        """Whether each request goes out at once: to a server, or an engine that batches by itself. Builds nothing."""
        return self.spec.is_api or self.spec.is_stepped

    @property
    def gives_loglikelihood(self) -> bool:
        """Whether it gives log-probabilities of any text, which need raw text and a tokenizer. Builds nothing.

        Those of a model that thinks first are of no use: they are of a text in the place of its thought.
        """
        backend = str(self.spec.arguments.get("tokenizer_backend", "")).lower()
        return not (self.thinks or self.spec.is_chat_api or (self.spec.is_api and backend == "none"))

    @cached_property
    def is_api(self) -> bool:
        """Whether requests go over the network."""
        from lm_eval.models.api_models import TemplateAPI

        return isinstance(self.lm, TemplateAPI)

    @property
    def form(self) -> Form:
        """Chat or raw text, and why."""
        if self.asked_chat not in self._forms:
            self._forms[self.asked_chat] = form_of(self.spec, self.asked_chat)
            if self.asked_chat is None and self._forms[None].chat and not self.spec.is_chat_api:
                log.info("Prompts of generator=%s are sent as %s.", self.spec.name, self._forms[None])
        return self._forms[self.asked_chat]

    @property
    def chat(self) -> bool:
        """Whether prompts go through the chat template."""
        return self.form.chat

    @chat.setter
    def chat(self, asked: bool) -> None:
        self.asked_chat = asked

    @property
    def continues(self) -> bool:
        """Whether it goes on in a reply that a prompt begins: in a chat whose template is applied here."""
        return self.chat and not self.spec.is_chat_api

    @property
    def fingerprint(self) -> str:
        """Name, arguments, content of a local folder, chat or not, seed, system instruction, the library's version."""
        rules = [OWN_RULES] if self.spec.is_hf else [TURN_ENDS] if self.spec.is_vllm and self.chat else []
        return digest([self.spec.identity, self.chat, self.seed, self.system, version("lm_eval"), *rules])

    @property
    def prompt_version(self) -> str | None:
        """The version of the prompt that its checkpoint was tuned on; None where it was tuned on none of ours."""
        return self.spec.note.prompt if self.spec.note else None

    @property
    def batch(self) -> int:
        """The model's own batch, four of them for vLLM, which batches by itself; behind an API requests at once."""
        return (4 if self.spec.is_vllm else 1) * self.spec.width

    def stream(self) -> Stream:
        """The model, asked many things at once."""
        spec = self.spec
        if spec.ray is not None:
            return OnRay(self)
        if spec.is_stepped:
            return Stepped(self.lm, self.wrap, self.options, self._stopped)
        if not self.is_api:
            return Batched(self)
        return Server(self.lm, spec, self.wrap, self.options, self._first)

    def generate(self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[str | CallError]:
        """The text of one continuation a prompt, in order; raises as :meth:`complete`."""
        replies = self.complete(prompts, decoding, samples)
        return [reply if isinstance(reply, CallError) else reply.text for reply in replies]

    def complete(
        self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]
    ) -> list[Completion | CallError]:
        """One continuation a prompt, in order; its text is "" where the model writes nothing.

        Raises:
            UserError: The model cannot be built or stops, has no chat template, or its server refuses us.
        """
        if self.streams:
            asked = list(zip(prompts, samples, strict=True))
            return self._all(lambda stream: [stream.generate(prompt, decoding, sample) for prompt, sample in asked])
        sources = [prompt.sources if isinstance(prompt, Grounded) else None for prompt in prompts]
        texts = [self.wrap(prompt.prompt if isinstance(prompt, Grounded) else prompt) for prompt in prompts]
        try:
            if is_plain(self.lm):
                seeds = [self.seed + sample for sample in samples]
                return [*complete_by_batches(self.lm, texts, self._roomy(decoding), seeds, sources, self._turn_ends)]
            if self.extractive:
                raise UserError(
                    f"gen_extractive=True is for generator=hf alone; {self.spec.name} generates in its own way."
                )
            return [*self._at_once(texts, decoding, samples)]
        except engine_errors(self.spec) as error:
            raise stopped(self.spec, error) from error

    def note_answered(self) -> None:
        """Failures of the first requests do not end the run: an earlier run was answered."""
        self._first.answered()

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float | CallError]:
        """ln P(continuation | prompt), in order.

        Raises:
            UserError: As ``complete``, or the model gives no log-probabilities.
        """
        if self.spec.is_chat_api or (self.is_api and self.lm.tokenizer is None):
            raise UserError(
                f"generator={self.spec.name} gives no log-probabilities of a prompt. Take generator=hf, or "
                "generator=local-completions with gen_tokenizer=."
            )
        if self.streams:
            replies = self._all(lambda stream: [stream.loglikelihood(*pair) for pair in pairs])
            return [reply if isinstance(reply, CallError) else reply[0] for reply in replies]
        requests = [(self.wrap(prompt), continuation) for prompt, continuation in pairs]
        try:
            values = quiet(self.lm.loglikelihood)([instance("loglikelihood", request) for request in requests])
        except engine_errors(self.spec) as error:
            raise stopped(self.spec, error) from error
        return [float(value) for value, _ in values]

    def _stopped(self, error: Exception) -> Exception:
        """The one line for an error of the engine; any other error as it is."""
        return stopped(self.spec, error) if isinstance(error, engine_errors(self.spec)) else error

    def _all(self, calls: Callable[[Stream], Iterable[Awaitable[Any]]]) -> list[Any]:
        """The replies to several calls of a stream that lives as long as they do."""

        async def main() -> list[Any]:
            stream = self.stream()
            try:
                return list(await asyncio.gather(*calls(stream)))
            finally:
                await stream.close()

        return run_async(main())

    def count_tokens(self, text: str) -> int | None:
        """Tokens by the model's tokenizer, without its chat template; None where there is none (chat APIs, dummy)."""
        if isinstance(text, Messages) and text.begun and self.continues:  # its parts stand apart when they are sent
            whole = self.count_tokens(self.wrap(text))
            return None if whole is None else whole - self._around
        if not self.is_api:
            return len(self.lm.tok_encode(text)) if hasattr(self.lm, "tok_encode") else None
        from lm_eval.models.api_models import TemplateAPI

        return None if self.lm.tokenizer is None else len(TemplateAPI.tok_encode(self.lm, text))

    def room(self, max_tokens: int) -> int | None:
        """The context length (``gen_max_length`` where an API does not tell) less what goes around and the reply."""
        if self.is_api and "max_length" not in self.spec.arguments:
            return None
        length = getattr(self.lm, "max_length", None)
        return None if length is None else int(length) - self._around - max_tokens - self.spec.thinking_tokens

    def wrap(self, prompt: str) -> Any:
        """The prompt as it is sent: text, or what a chat API takes."""
        if not self.chat:
            return as_text(prompt, self.system)
        sent = as_chat(self._renders, self.spec, prompt, self.system)
        if isinstance(sent, str) and sent.rstrip().endswith(THOUGHT_START) and not self.thinks:
            warn_of_thoughts(self.spec.name, self.spec.model)
        return sent

    def as_written(self, prompt: str, continuation: str) -> str:
        """See :func:`.chat.as_written`; raw text keeps its space."""
        return as_written(self._renders, prompt, continuation) if self.chat else continuation

    @property
    def _renders(self) -> Any:
        """The lm_eval model whose template is applied; behind an API its class applies one where it sends ids."""
        return with_ids(self.lm) if self.is_api and not self.spec.is_chat_api else self.lm

    def options(self, decoding: Decoding, sample: int) -> dict[str, Any]:
        """lm_eval's options for one request to a server or an engine."""
        seed, ends = self.seed + sample, self._turn_ends
        return request_options(self.spec, self.lm, self._roomy(decoding), seed, is_api=self.is_api, turn_ends=ends)

    def _roomy(self, decoding: Decoding) -> Decoding:
        return with_room(decoding, self.spec.thinking_tokens, stops=self.spec.is_hf or self.spec.is_vllm)

    @property
    def _turn_ends(self) -> Sequence[int]:
        """The token that ends a turn, where prompts are chats and the model is here; a server knows its own."""
        return self._template_end if self.chat and (self.spec.is_hf or self.spec.is_vllm) else ()

    @cached_property
    def _template_end(self) -> tuple[int, ...]:
        end = turn_end(self.lm.tokenizer, getattr(self.lm, "hf_chat_template", None))
        return () if end is None else (end,)

    @property
    def _around(self) -> int:
        """Tokens that the chat template and the system instruction add to a prompt."""
        key = (self.chat, self.system)
        if key not in self._counted:
            around = self.wrap("") if self.chat or self.system else ""
            text = around if isinstance(around, str) else self.system or ""  # messages: their template is the server's
            counted = self.count_tokens(text) if text else 0
            self._counted[key] = len(text.encode()) // BYTES_PER_TOKEN if counted is None else counted
        return self._counted[key]

    def _at_once(self, texts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[Completion]:
        """What another local engine writes."""
        requests = [(text, self.options(decoding, sample)) for text, sample in zip(texts, samples, strict=True)]
        written = quiet(self.lm.generate_until)([instance("generate_until", request) for request in requests])
        completions = [local_completion(text, decoding) for text in written]
        return [replace(one, text=cut(one.text, decoding)) for one in completions]
