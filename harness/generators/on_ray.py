"""A local model in many workers of Ray, each with a copy: ``gen_ray=local``, ``auto`` or the address of a cluster.

The workers get batches, as one model in this process would, and replies come back batch by batch, so that the journal,
the progress and an interrupted run are as ever. A worker that is killed is started again, and its batch is asked again.
What a model writes depends neither on the batch nor on the worker, where their hardware is equal.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.common.ray_engine import RETRIES, connected, in_our_words, room, variables
from lm_eval_rag.harness.generators.base import Decoding, Generator
from lm_eval_rag.harness.generators.batched import Batched, run_batch


def check_ray(name: str, arguments: Mapping[str, Any], is_hf: bool) -> None:
    """Raise a UserError where ``gen_ray`` and ``gen_ray_cpus`` do not fit the generator, or Ray is missing.

    Args:
        name: Of the generator.
        arguments: Its ``gen_*`` arguments.
        is_hf: Whether transformers runs it.
    """
    if "ray" not in arguments:
        if "ray_cpus" in arguments:
            raise UserError("gen_ray_cpus says how many cores a worker of Ray has: give gen_ray=local or ADDRESS too.")
        return
    if not is_hf:
        raise UserError(
            f"gen_ray is not used by generator={name}, only by generator=hf and the embedded ones. For vLLM start "
            "`vllm serve` on each machine, and give generator=local-chat-completions,gen_base_url=[URL,URL]."
        )
    need("gen_ray", "ray", "ray")


class OnRay(Batched):
    """Serves one batch at a time by each worker; the workers start with the first ask.

    Args:
        generator: An :class:`~lm_eval_rag.harness.generators.lm.LMGenerator`. The workers build their models by its
            description; ``gen_ray_cpus`` says how many cores each has (1; and a GPU of its own, if the cluster has
            any). Here it only counts tokens.
    """

    def __init__(self, generator: Any) -> None:
        super().__init__(generator)
        described = {name: getattr(generator, name) for name in ("spec", "chat", "seed", "system")}
        kind: Callable[..., Generator] = type(generator)
        self._build = partial(kind, **described)
        self._address, self._cpus = generator.spec.ray, int(generator.spec.arguments.get("ray_cpus", 1))
        self._connection = ExitStack()
        self._ray: Any = None
        self._workers: list[Any] = []

    async def _replies(self, lane: int, decoding: Decoding | None, asks: Sequence[tuple[str, Any]]) -> list[Any]:
        if self._ray is None:  # only one lane is open until then
            await self._worker.call(self._start)
            self._open()
        try:
            reply = self._workers[lane].answer.remote(decoding, list(asks))
            replies: list[Any] = await asyncio.wrap_future(reply.future())
        except self._ray.exceptions.RayError as error:
            raise in_our_words(self._ray, error, "generation", RETRIES) from None
        return replies

    def _start(self) -> None:
        ray = self._connection.enter_context(connected(self._address, "gen_ray"))
        count, takes = room(ray, self._cpus)
        worker = ray.remote(_Worker).options(**takes, max_restarts=RETRIES, max_task_retries=RETRIES)
        self._workers = [worker.remote(variables(), self._build) for _ in range(count)]
        self._ray, self.lanes = ray, count

    async def close(self) -> None:
        """Stop serving, and end the workers."""
        await super().close()
        for worker in self._workers:
            self._ray.kill(worker)
        self._connection.close()


class _Worker:
    """A model in a process of Ray."""

    def __init__(self, environment: Mapping[str, str], build: Callable[[], Generator]) -> None:
        os.environ.update(environment)
        self._generator = build()

    def answer(self, decoding: Decoding | None, asks: Sequence[tuple[str, Any]]) -> list[Any]:
        """The replies to a batch."""
        return run_batch(self._generator, decoding, asks)
