"""Any lm_eval model as a generator, by composition: ``generator=hf,gen_pretrained=...``.

Local models get their requests in batches, models behind an API many at once, each by itself
(:mod:`lm_eval_rag.harness.generators.server`).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.core.loop import run_async
from lm_eval_rag.harness.generators.base import BYTES_PER_TOKEN, Completion, Decoding, Stream
from lm_eval_rag.harness.generators.batched import Batched
from lm_eval_rag.harness.generators.replies import split_thinking
from lm_eval_rag.harness.generators.server import Server
from lm_eval_rag.harness.generators.spec import ModelSpec, build

PARAGRAPH = "\n\n"


class LMGenerator:
    """An lm_eval model, built when first needed.

    Args:
        spec: Which model, with which arguments.
        chat: Send prompts as one user message through the model's chat template; always so for chat APIs.
        seed: Of sampled draws behind an API and in vLLM: draw n is sent with seed + n.
        system: An instruction before every prompt: the system message of a chat, else the text's first paragraph.
    """

    def __init__(self, spec: ModelSpec, *, chat: bool = False, seed: int = 0, system: str | None = None) -> None:
        self.spec = spec
        self.chat = chat or spec.is_chat_api
        self.seed = seed
        self.system = system
        self._counted: dict[tuple[bool, str | None], int] = {}

    @cached_property
    def lm(self) -> Any:
        """The model itself; building it is what costs."""
        return build(self.spec)

    def load(self) -> None:
        """Build the model, if it is not built."""
        _ = self.lm

    @property
    def is_remote(self) -> bool:
        """Whether its requests go over the network, as its arguments say; builds nothing."""
        return self.spec.is_api

    @cached_property
    def is_api(self) -> bool:
        """Whether requests go over the network."""
        from lm_eval.models.api_models import TemplateAPI

        return isinstance(self.lm, TemplateAPI)

    @property
    def fingerprint(self) -> str:
        """Name, arguments, content of a local folder, chat or not, seed, system instruction, the library's version."""
        return digest([self.spec.identity, self.chat, self.seed, self.system, version("lm_eval")])

    @property
    def prompt_version(self) -> str | None:
        """The version of the prompt that its checkpoint was tuned on; None where it was tuned on none of ours."""
        return self.spec.note.prompt if self.spec.note else None

    @property
    def batch(self) -> int:
        """The model's own batch; behind an API requests at once."""
        return self.spec.width

    def stream(self) -> Stream:
        """The model, asked many things at once."""
        if not self.is_api:
            return Batched(self)
        spec = self.spec
        return Server(
            self.lm,
            self._wrap,
            self._options,
            width=spec.width,
            tries=spec.tries,
            wait=spec.retry_wait,
            rpm=spec.arguments.get("rpm"),
            tpm=spec.arguments.get("tpm"),
        )

    def generate(self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[str | CallError]:
        """The text of one continuation a prompt, in order; raises as :meth:`complete`."""
        replies = self.complete(prompts, decoding, samples)
        return [reply if isinstance(reply, CallError) else reply.text for reply in replies]

    def complete(
        self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]
    ) -> list[Completion | CallError]:
        """One continuation a prompt, in order.

        Raises:
            UserError: The model cannot be built, has no chat template, or its server refuses us.
        """
        asked = list(zip(prompts, samples, strict=True))
        if self.is_api:
            return self._all(lambda stream: [stream.generate(prompt, decoding, sample) for prompt, sample in asked])
        requests = [(self._wrap(prompt), self._options(decoding, sample)) for prompt, sample in asked]
        texts = _quiet(self.lm.generate_until)([_instance("generate_until", request) for request in requests])
        return [_completion(text) for text in texts]

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float | CallError]:
        """ln P(continuation | prompt), in order.

        Raises:
            UserError: As ``generate``, or the model gives no log-probabilities.
        """
        self._check_probabilities()
        if self.is_api:
            found = self._all(lambda stream: [stream.loglikelihood(*pair) for pair in pairs])
            return [reply if isinstance(reply, CallError) else reply[0] for reply in found]
        requests = [(self._wrap(prompt), continuation) for prompt, continuation in pairs]
        values = _quiet(self.lm.loglikelihood)([_instance("loglikelihood", request) for request in requests])
        return [float(value) for value, _ in values]

    def _all(self, calls: Callable[[Stream], Iterable[Awaitable[Any]]]) -> list[Any]:
        """The replies to several calls of a stream that lives as long as they do."""

        async def main() -> list[Any]:
            stream = self.stream()
            try:
                return list(await asyncio.gather(*calls(stream)))
            finally:
                await stream.close()

        return run_async(main())

    def _check_probabilities(self) -> None:
        if self.spec.is_chat_api or (self.is_api and self.lm.tokenizer is None):
            raise UserError(
                f"generator={self.spec.name} gives no log-probabilities of a prompt. Take generator=hf, or "
                "generator=local-completions with gen_tokenizer=."
            )

    def count_tokens(self, text: str) -> int | None:
        """Tokens by the model's tokenizer, without its chat template; None where there is none (chat APIs, dummy)."""
        if not self.is_api:
            return len(self.lm.tok_encode(text)) if hasattr(self.lm, "tok_encode") else None
        from lm_eval.models.api_models import TemplateAPI

        return None if self.lm.tokenizer is None else len(TemplateAPI.tok_encode(self.lm, text))

    def room(self, max_tokens: int) -> int | None:
        """The context length (``gen_max_length`` where an API does not tell) less what goes around and the reply."""
        if self.is_api and "max_length" not in self.spec.arguments:
            return None
        length = getattr(self.lm, "max_length", None)
        return None if length is None else int(length) - self._around - max_tokens

    @property
    def _around(self) -> int:
        """Tokens that the chat template and the system instruction add to a prompt."""
        key = (self.chat, self.system)
        if key not in self._counted:
            around = self._wrap("") if self.chat or self.system else ""
            text = around if isinstance(around, str) else self.system or ""  # messages: their template is the server's
            counted = self.count_tokens(text) if text else 0
            self._counted[key] = len(text.encode()) // BYTES_PER_TOKEN if counted is None else counted
        return self._counted[key]

    def _wrap(self, prompt: str) -> Any:
        """The prompt as it is sent; where there is no chat, the instruction ends in white space or an empty line."""
        system = self.system or ""
        if not self.chat:
            return f"{system}{'' if not system or system[-1].isspace() else PARAGRAPH}{prompt}"
        messages = [{"role": "system", "content": system}] if system else []
        try:
            return self.lm.apply_chat_template([*messages, {"role": "user", "content": prompt}])
        except (ValueError, NotImplementedError) as error:
            raise UserError(
                f"generator={self.spec.name} has no chat template ({error}). Run without --apply_chat_template."
            ) from None

    def _options(self, decoding: Decoding, sample: int) -> dict[str, Any]:
        options: dict[str, Any] = {"until": list(decoding.stop), "max_gen_toks": decoding.max_tokens}
        if decoding.temperature > 0:
            options |= {"do_sample": True, "temperature": decoding.temperature}
            if self.is_api or self.spec.name == "vllm":  # hf follows lm_eval's --seed
                options["seed"] = self.seed + sample
        elif not self.is_api:
            options["do_sample"] = False  # said nothing, lm_eval's vllm samples at temperature 1
        return options


def _instance(kind: str, arguments: tuple[Any, ...]) -> Any:
    from lm_eval.api.instance import Instance

    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def _quiet(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call without its own progress bar, where it has that option."""
    if "disable_tqdm" in inspect.signature(call).parameters:
        return lambda requests: call(requests, disable_tqdm=True)
    return call


def _completion(text: str) -> Completion:
    thinking, answer = split_thinking(text)
    return Completion(answer, thinking=thinking)
