"""Any lm_eval model as a generator, by composition: ``generator=hf,gen_pretrained=...``.

Local models get their requests in batches. Models behind an API get one request a thread, because lm_eval's own
concurrent path drops every answer of a batch when one request of it fails; here each request fails alone, after its
retries, and a reply without text counts as a failure, not as an empty answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.metadata import version
from typing import Any

from lm_eval_rag.harness.errors import CallError, UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.build import ModelSpec, build
from lm_eval_rag.harness.journal import digest

REFUSED = (401, 403, 404)  # statuses that no retry and no other question can heal


class LMGenerator:
    """An lm_eval model, built when first needed.

    Args:
        spec: Which model, with which arguments.
        chat: Send prompts as one user message through the model's chat template; always so for chat APIs.
        seed: Of sampled draws behind an API: draw n is sent with seed + n.
    """

    def __init__(self, spec: ModelSpec, *, chat: bool = False, seed: int = 0) -> None:
        self.spec = spec
        self.chat = chat or spec.is_chat_api
        self.seed = seed

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
        """Name, arguments, content of a local folder, chat or not, seed, and the library's version."""
        return digest([self.spec.identity(), self.chat, self.seed, version("lm_eval")])

    @property
    def batch(self) -> int:
        """Four of the model's own batches, so that prompts of like length meet; behind an API four a thread."""
        return 4 * self.spec.width

    def generate(self, prompts: Sequence[str], decoding: Decoding, draws: Sequence[int]) -> list[str | CallError]:
        """One continuation a prompt, in order."""
        requests = [
            self._request(prompt, self._options(decoding, draw)) for prompt, draw in zip(prompts, draws, strict=True)
        ]
        if self.is_api:
            return self._each(self._post, requests)
        return list(_quiet(self.lm.generate_until)(requests))

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float | CallError]:
        """ln P(continuation | prompt), in order."""
        requests = [_instance("loglikelihood", (self._wrap(prompt), continuation)) for prompt, continuation in pairs]
        call = _quiet(self.lm.loglikelihood)
        if self.is_api:
            return self._each(lambda request: float(call([request])[0][0]), requests)
        return [float(value) for value, _ in call(requests)]

    def count_tokens(self, text: str) -> int | None:
        """Tokens by the model's tokenizer; None behind a chat API."""
        if self.is_api and self.lm.tokenizer is None:
            return None
        return len(self.lm.tok_encode(text))

    def room(self, max_tokens: int) -> int | None:
        """The context length (``gen_max_length`` where an API does not tell) less what is to be written."""
        if self.is_api and "max_length" not in self.spec.arguments:
            return None
        length = getattr(self.lm, "max_length", None)
        return None if length is None else int(length) - max_tokens

    def _request(self, prompt: str, options: dict[str, Any]) -> Any:
        return _instance("generate_until", (self._wrap(prompt), options))

    def _wrap(self, prompt: str) -> Any:
        return self.lm.apply_chat_template([{"role": "user", "content": prompt}]) if self.chat else prompt

    def _options(self, decoding: Decoding, draw: int) -> dict[str, Any]:
        options: dict[str, Any] = {"until": list(decoding.stop), "max_gen_toks": decoding.max_tokens}
        if decoding.temperature > 0:
            options |= {"do_sample": True, "temperature": decoding.temperature}
            if self.is_api:
                options["seed"] = self.seed + draw
        return options

    def _post(self, request: Any) -> str:
        """One request over the network and the text of its reply."""
        prompt, options = request.args
        message = self.lm.tok_encode(prompt) if self.lm.tokenized_requests else prompt
        reply = self.lm.model_call(messages=[message], generate=True, gen_kwargs=options)
        if not isinstance(reply, dict) or ("content" not in reply and not _has_text(reply)):
            raise CallError(f"generator: the reply holds no text: {str(reply)[:200]}")
        return str(self.lm.parse_generations(outputs=reply)[0])

    def _each(self, call: Callable[[Any], Any], requests: Sequence[Any]) -> list[Any]:
        """Every call in a thread; one that fails to the end gives a CallError, one that is refused ends the run."""
        from requests import RequestException
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

        retrying = Retrying(
            stop=stop_after_attempt(self.spec.retries),
            wait=wait_exponential(multiplier=0.25, max=10),
            retry=retry_if_exception(_transient),
            reraise=True,
        )

        def attempt(request: Any) -> Any:
            try:
                return retrying.copy()(call, request)
            except (RequestException, CallError) as error:
                if _status(error) in REFUSED:
                    raise UserError(
                        f"The generator's server refused the request: {error}. Check the base URL, the model's name "
                        "and the key in the environment (OPENAI_API_KEY)."
                    ) from None
                return CallError(f"generator: {error}")

        with ThreadPoolExecutor(self.spec.width) as pool:
            return list(pool.map(attempt, requests))


def _has_text(reply: dict[str, Any]) -> bool:
    """Whether an OpenAI-style reply holds a text; lm_eval reads a malformed one as an empty answer."""
    try:
        choice = reply["choices"][0]
        return isinstance(choice["message"]["content"] if "message" in choice else choice["text"], str)
    except (KeyError, IndexError, TypeError):
        return False


def _status(error: BaseException) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _transient(error: BaseException) -> bool:
    """Whether another try may help: what failed on the way, 408, 409, 429 and 5xx, and replies without text."""
    from requests import RequestException

    status = _status(error)
    if isinstance(error, CallError):
        return True
    return isinstance(error, RequestException) and (status is None or status in (408, 409, 429) or status >= 500)


def _instance(kind: str, arguments: tuple[Any, ...]) -> Any:
    from lm_eval.api.instance import Instance

    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def _quiet(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call without its own progress bar, where it has that option."""
    if "disable_tqdm" in inspect.signature(call).parameters:
        return lambda requests: call(requests, disable_tqdm=True)
    return call
