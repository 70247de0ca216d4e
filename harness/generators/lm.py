"""Any lm_eval model as a generator, by composition: ``generator=hf,gen_pretrained=...``.

Local models get their requests in batches. Models behind an API get one request a thread, because lm_eval's own
concurrent path drops every answer of a batch when one request of it fails; here each request fails alone, after its
tries, and a reply without text counts as a failure, not as an empty answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.generators.base import BYTES_PER_TOKEN, Decoding
from lm_eval_rag.harness.generators.network import cut, each, text_of
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
        """Four of the model's own batches, so that prompts of like length meet; behind an API four a thread."""
        return 4 * self.spec.width

    def generate(self, prompts: Sequence[str], decoding: Decoding, draws: Sequence[int]) -> list[str | CallError]:
        """One continuation a prompt, in order.

        Raises:
            UserError: The model cannot be built, has no chat template, or its server refuses us.
        """
        requests = [
            (self._wrap(prompt), self._options(decoding, draw)) for prompt, draw in zip(prompts, draws, strict=True)
        ]
        if self.is_api:
            return self._each(self._post, requests)
        return list(_quiet(self.lm.generate_until)([_instance("generate_until", request) for request in requests]))

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float | CallError]:
        """ln P(continuation | prompt), in order.

        Raises:
            UserError: As ``generate``, or the model gives no log-probabilities.
        """
        if self.spec.is_chat_api or (self.is_api and self.lm.tokenizer is None):
            raise UserError(
                f"generator={self.spec.name} gives no log-probabilities of a prompt. Take generator=hf, or "
                "generator=local-completions with gen_tokenizer=."
            )
        requests = [(self._wrap(prompt), continuation) for prompt, continuation in pairs]
        if self.is_api:
            return self._each(self._post_pair, requests)
        found = _quiet(self.lm.loglikelihood)([_instance("loglikelihood", request) for request in requests])
        return [float(value) for value, _ in found]

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

    def _options(self, decoding: Decoding, draw: int) -> dict[str, Any]:
        options: dict[str, Any] = {"until": list(decoding.stop), "max_gen_toks": decoding.max_tokens}
        if decoding.temperature > 0:
            options |= {"do_sample": True, "temperature": decoding.temperature}
            if self.is_api or self.spec.name == "vllm":  # hf follows lm_eval's --seed
                options["seed"] = self.seed + draw
        elif not self.is_api:
            options["do_sample"] = False  # said nothing, lm_eval's vllm samples at temperature 1
        return options

    def _each(self, call: Callable[[Any], Any], requests: Sequence[Any]) -> list[Any]:
        spec = self.spec
        return each(call, requests, width=spec.width, tries=spec.tries, wait=spec.retry_wait)

    def _post(self, request: tuple[Any, dict[str, Any]]) -> str:
        """One prompt over the network and the text of its reply."""
        prompt, options = request
        message = self.lm.tok_encode(prompt) if self.lm.tokenized_requests else prompt
        reply = self.lm.model_call(messages=[message], generate=True, gen_kwargs=options)
        return cut(text_of(self.lm, reply), options["until"])

    def _post_pair(self, request: tuple[str, str]) -> float:
        """One prompt and its continuation over the network, and the log-probability the server gives."""
        encoded = self.lm._encode_pair(*request)
        inputs, lengths, _ = self.lm.batch_loglikelihood_requests([[(request, *encoded)]])
        reply = self.lm.model_call(messages=inputs, generate=False)
        try:
            return float(self.lm.parse_logprobs(outputs=reply, tokens=inputs, ctxlens=lengths)[0][0])
        except (KeyError, IndexError, TypeError):
            raise CallError(f"the reply holds no log-probabilities: {str(reply)[:200]}") from None


def _instance(kind: str, arguments: tuple[Any, ...]) -> Any:
    from lm_eval.api.instance import Instance

    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def _quiet(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call without its own progress bar, where it has that option."""
    if "disable_tqdm" in inspect.signature(call).parameters:
        return lambda requests: call(requests, disable_tqdm=True)
    return call
