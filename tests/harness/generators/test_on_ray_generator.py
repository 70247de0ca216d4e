"""``gen_ray``: batches are shared out over workers, here threads that stand for those of Ray."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.generators import on_ray
from lm_eval_rag.harness.generators.base import Completion, Decoding
from lm_eval_rag.harness.generators.batched import Batched
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec


class Model:
    """Writes each prompt backwards, after a moment."""

    batch = 4

    def __init__(self, **description: Any) -> None:
        self.description = description
        self.spec = ModelSpec("tiny", {"ray": "local"})
        self.chat, self.seed, self.system = False, 0, None

    def generate(self, prompts: Any, decoding: Decoding, samples: Any) -> list[str]:
        time.sleep(0.01)
        if "refuse" in prompts:
            raise UserError("this prompt is refused")
        return [
            f"{prompt[::-1]}{sample}"[: decoding.max_tokens] for prompt, sample in zip(prompts, samples, strict=True)
        ]

    def loglikelihood(self, pairs: Any) -> list[float]:
        return [-float(len(prompt) + len(continuation)) for prompt, continuation in pairs]


class Rays:
    """As much of Ray as a generator needs: each worker is a thread."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            def __init__(self, cause: Exception) -> None:
                self.cause = cause

    def __init__(self, count: int, fault: Callable[[], Exception | None] = lambda: None) -> None:
        self.count, self.fault = count, fault
        self.batches: list[tuple[int, int]] = []  # (worker, asks)
        self.killed, self.closed, self.options = 0, 0, dict[str, Any]()

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.count}

    def remote(self, kind: Any) -> Any:
        def start(environment: Any, description: Any) -> Any:
            worker, number = kind(environment, description), next(numbers)
            thread = ThreadPoolExecutor(1)

            def answer(decoding: Any, asks: Any) -> Any:
                try:
                    if fault := self.fault():
                        raise fault
                    self.batches.append((number, len(asks)))
                    return worker.answer(decoding, asks)
                except UserError as error:
                    raise self.exceptions.RayTaskError(error) from None

            def submit(*given: Any) -> Any:
                done: Future[Any] = thread.submit(answer, *given)
                return SimpleNamespace(future=lambda: done)

            return SimpleNamespace(answer=SimpleNamespace(remote=submit))

        def options(**given: Any) -> Any:
            self.options = given
            return SimpleNamespace(remote=start)

        numbers = iter(range(99))
        return SimpleNamespace(options=options)

    def kill(self, worker: Any) -> None:
        self.killed += 1

    @contextmanager
    def connected(self, address: str, what: str) -> Iterator[Any]:
        yield self
        self.closed += 1


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rays]:
    def of(count: int, **given: Any) -> Rays:
        rays = Rays(count, **given)
        monkeypatch.setattr(on_ray, "connected", rays.connected)
        return rays

    return of


def replies(stream: Batched, prompts: list[str]) -> list[Any]:
    async def main() -> list[Any]:
        try:
            texts = [stream.generate(prompt, Decoding(9 + i % 2), i) for i, prompt in enumerate(prompts)]
            return await asyncio.gather(*texts, *(stream.loglikelihood(prompt, "x") for prompt in prompts))
        finally:
            await stream.close()

    return [reply.text if isinstance(reply, Completion) else reply[0] for reply in asyncio.run(main())]


@pytest.mark.parametrize("count", [1, 3, 20])
def test_replies_are_those_of_one_process(count: int, cluster: Callable[..., Rays]) -> None:
    rays, prompts = cluster(count), [f"prompt {i * i}" for i in range(50)]
    assert replies(on_ray.OnRay(Model()), prompts) == replies(Batched(Model()), prompts)
    assert sum(asks for _, asks in rays.batches) == 100 and max(asks for _, asks in rays.batches) == 4
    assert {worker for worker, _ in rays.batches} == set(range(count))
    assert (rays.killed, rays.closed) == (count, 1)
    assert rays.options == {"num_cpus": 1, "num_gpus": 0, "max_restarts": 3, "max_task_retries": 3}
    assert threading.active_count() < 99


def test_errors_are_those_of_one_process(cluster: Callable[..., Rays]) -> None:
    cluster(2)
    with pytest.raises(UserError, match=r"^this prompt is refused$"):
        replies(on_ray.OnRay(Model()), ["a", "refuse", "b"])
    cluster(2, fault=lambda: Rays.exceptions.RayError("The actor died"))
    with pytest.raises(MachineError, match=r"generation: a worker was killed, also after 3 more tries \(The actor"):
        replies(on_ray.OnRay(Model()), ["a"])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("tiny", {"ray_cpus": 2}, "give gen_ray=local or ADDRESS too"),
        ("tiny", {"ray": "local", "ray_cpus": 0}, "gen_ray_cpus.*1 or more"),
        ("vllm", {"ray": "auto"}, "start `vllm serve` on each machine"),
        ("local-completions", {"ray": "auto", "base_url": "http://127.0.0.1:1/v1/completions"}, "only by generator=hf"),
    ],
)
def test_what_does_not_fit_is_refused(
    name: str, arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "need", lambda *_: None)
    with pytest.raises(UserError, match=message):
        ModelSpec(name, arguments).check()


def test_without_ray_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_eval_rag.harness.common.extras.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"gen_ray needs ray, which is not installed. Install with `pip install"):
        ModelSpec("tiny", {"ray": "local"}).check()


def test_where_it_runs_changes_no_fingerprint() -> None:
    plain, spread = LMGenerator(ModelSpec("tiny")), LMGenerator(ModelSpec("tiny", {"ray": "local", "ray_cpus": 2}))
    assert plain.fingerprint == spread.fingerprint and isinstance(spread.stream(), on_ray.OnRay)
