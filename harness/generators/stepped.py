"""vLLM as a stream: one engine with every ask in flight, and each reply when it is finished.

lm_eval's model builds the engine, encodes prompts and names the sampling parameters. Its own ``generate_until`` waits
for the slowest reply of a list; here a thread steps the engine, and new asks join between two steps.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter
from typing import Any
from uuid import uuid4

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.loop import MOMENT
from lm_eval_rag.harness.generators.base import Completion, Decoding, cut
from lm_eval_rag.harness.generators.thinking import THOUGHT_END, split_thinking

FINISHES = {"stop": "stop", "length": "length"}  # as the engine names them -> as recorded; "abort" is neither


@dataclass(frozen=True, slots=True)
class _Request:
    """Token ids for the engine, and who waits for its output."""

    ids: list[int]
    params: Any
    loop: asyncio.AbstractEventLoop
    output: asyncio.Future[Any]

    def resolve(self, output: Any, error: BaseException | None = None) -> None:
        """Hand over the output, from any thread."""

        def resolve() -> None:
            if not self.output.done():
                self.output.set_result(output) if error is None else self.output.set_exception(error)

        with suppress(RuntimeError):  # the loop is closed: the run was interrupted
            self.loop.call_soon_threadsafe(resolve)


class Stepped:
    """The stream of lm_eval's ``vllm``.

    Args:
        lm: The lm_eval model, with its engine in this process (``data_parallel_size`` 1).
        wrap: The text that the model reads for a prompt.
        options: The generation arguments of a decoding and a sample index, as lm_eval names them.
        stopped: What is raised for an error of the engine.
    """

    def __init__(
        self,
        lm: Any,
        wrap: Callable[[str], str],
        options: Callable[[Decoding, int], dict[str, Any]],
        stopped: Callable[[Exception], Exception],
    ) -> None:
        self._lm, self._wrap, self._options, self._stopped = lm, wrap, options, stopped
        self._asked: SimpleQueue[_Request | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    async def generate(self, prompt: str, decoding: Decoding, sample: int) -> Completion | CallError:
        """One continuation, when the engine has finished it; ``seconds`` are those since it was asked."""
        from vllm import SamplingParams

        began = perf_counter()
        kwargs, stops, max_tokens = self._lm.modify_gen_kwargs(self._options(decoding, sample), eos=self._end)
        think = self._lm.think_end_token
        if think:  # thoughts may hold stop strings
            stops = [stop for stop in stops if stop == self._end]
        ids = self._lm.tok_encode(self._wrap(prompt))[-max(1, self._lm.max_length - max_tokens) :]
        output = await self._ask(ids, SamplingParams(max_tokens=max_tokens, stop=stops, **kwargs))
        written = output.outputs[0]
        whole = written.text
        cut_off = bool(think) and written.finish_reason == "length"
        thinking, text = ("", whole) if decoding.thinking else split_thinking(whole, think or THOUGHT_END, cut_off)
        short = cut(text, decoding)
        return Completion(
            short,
            "stop" if short != text else FINISHES.get(str(written.finish_reason), ""),
            thinking,
            len(ids),
            len(written.token_ids),
            perf_counter() - began,
        )

    async def loglikelihood(self, prompt: str, continuation: str) -> tuple[float, float] | CallError:
        """ln P(continuation | prompt), and the seconds since it was asked; a long prompt loses its beginning."""
        from vllm import SamplingParams

        began, lm, text = perf_counter(), self._lm, self._wrap(prompt)
        before, after = (
            lm._encode_pair(text, continuation) if text else ([lm.prefix_token_id], lm.tok_encode(continuation))
        )
        ids = (before + after)[-(lm.max_length - 1) :]  # the engine writes at least one token
        params = SamplingParams(temperature=0, prompt_logprobs=1, max_tokens=1, detokenize=False)
        output = await self._ask(ids, params)
        value, _ = lm._parse_logprobs(ids, output, len(ids) - len(after))
        return float(value), perf_counter() - began

    @property
    def _end(self) -> str:
        """The end token as lm_eval writes it among the stop strings."""
        tokenizer = self._lm.tokenizer
        return str(tokenizer.decode(self._lm.eot_token_id) or getattr(tokenizer, "eos_token", None) or "")

    async def _ask(self, ids: list[int], params: Any) -> Any:
        """The engine's finished output."""
        from vllm.sampling_params import RequestOutputKind

        params.output_kind = RequestOutputKind.FINAL_ONLY
        loop = asyncio.get_running_loop()
        request = _Request(ids, params, loop, loop.create_future())
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="lm-eval-rag vllm", daemon=True)
            self._thread.start()
        self._asked.put(request)
        if self._failure is not None:  # set before the engine's thread answers what waits for the last time
            raise self._failure
        return await request.output

    def _serve(self) -> None:
        """Step the engine while anything is in flight; sleep while nothing is."""
        flying: dict[str, _Request] = {}
        try:
            self._step_until_closed(flying)
        except Exception as error:  # noqa: BLE001 - raised where the outputs are awaited
            self._failure = self._stopped(error)
            while flying or not self._asked.empty():
                request = flying.popitem()[1] if flying else self._asked.get()
                if request is not None:
                    request.resolve(None, self._failure)

    def _step_until_closed(self, flying: dict[str, _Request]) -> None:
        from vllm import TokensPrompt

        engine = self._lm.model.llm_engine
        while True:
            while not flying or not self._asked.empty():
                request = self._asked.get()
                if request is None:
                    engine.abort_request(list(flying))
                    return
                name, prompt = uuid4().hex, TokensPrompt(prompt_token_ids=request.ids)
                flying[name] = request
                engine.add_request(name, prompt, request.params, lora_request=self._lm.lora_request)
            for output in engine.step():
                if output.finished:
                    flying.pop(output.request_id).resolve(output)

    async def close(self) -> None:
        """Abort what is in flight and end the thread; a step that hangs is abandoned after a moment."""
        if self._thread is not None:
            self._asked.put(None)
            self._thread.join(MOMENT)
            self._thread = None
