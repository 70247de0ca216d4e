"""How near the engine comes to the shortest possible run, beside a barrier after each batch and lm-eval's API model.

    python scripts/bench_engine.py              # simulated time: seconds of CPU, the same on every machine
    python scripts/bench_engine.py --real       # besides: a real server on this machine, real seconds

The bound is max(work / places, longest chain): all replies' seconds over the places of the server, or the longest
question. Methods ask 1, 3 or 12 times, each time after the reply before. Latencies have a mean of 1 s (in simulated
time): constant, log-normal (sigma 1), or one in 16 slow (0.6 s, and 7 s). ``barrier`` is how the engine worked before:
batches of four times the places, each waited for whole.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import random
import time
from collections.abc import Callable
from typing import Any

from chat_server import ChatServer

from lm_eval_rag.harness.backends.generation import GenerateBackend, OpenStream
from lm_eval_rag.harness.core.asks import Generate, generate
from lm_eval_rag.harness.core.driver import Driver, _Run
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.generators.base import Completion, Decoding

QUESTIONS = 1000
ORDERS = 2000  # that are tried for the luckiest
LATENCIES: dict[str, Callable[[random.Random], float]] = {
    "constant": lambda rng: 1.0,
    "log-normal": lambda rng: rng.lognormvariate(-0.5, 1.0),
    "1 in 16 slow": lambda rng: 7.0 if rng.random() < 1 / 16 else 0.6,
}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            if timeout:
                self.now += timeout
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now


class Simulated:
    """A server with so many places; the latency of a call follows from its prompt."""

    fingerprint, batch, streams = "simulated", 1, True

    def __init__(self, places: int, latency: dict[str, float]) -> None:
        self.places, self.latency = asyncio.Semaphore(places), latency

    def stream(self) -> Simulated:
        return self

    async def generate(self, prompt: str, decoding: Decoding, sample: int) -> Completion:
        async with self.places:
            await asyncio.sleep(self.latency[prompt])
        return Completion("x")

    async def loglikelihood(self, prompt: str, continuation: str) -> tuple[float, float]:
        raise NotImplementedError

    async def close(self) -> None: ...

    def count_tokens(self, text: str) -> None: ...

    def room(self, max_tokens: int) -> None: ...


def method(calls: int) -> Callable[[Query], Plan[Answer]]:
    """Asks so often, one call after the other."""

    def chain(query: Query) -> Plan[Answer]:
        for i in range(calls):
            yield from generate(f"{query.id} {i}")
        return Answer("x")

    return chain


def drawn(name: str, calls: int, seed: int) -> dict[str, float]:
    """The latency of every call, in seconds of a mean of 1."""
    rng = random.Random(seed)
    return {f"q{q} {i}": LATENCIES[name](rng) for q in range(QUESTIONS) for i in range(calls)}


def bound(latency: dict[str, float], places: int) -> float:
    """The shortest possible run in seconds: the places are never idle, or the longest question."""
    chains: dict[str, float] = {}
    for prompt, seconds in latency.items():
        question = prompt.split()[0]
        chains[question] = chains.get(question, 0.0) + seconds
    return max(sum(latency.values()) / places, *chains.values())


def engine(latency: dict[str, float], calls: int, places: int) -> float:
    """Simulated seconds of a run by the driver."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    driver = Driver(method(calls), {Generate: GenerateBackend(OpenStream(Simulated(places, latency)))})
    queries = [Query(f"q{i}", "") for i in range(QUESTIONS)]
    loop.run_until_complete(_Run(driver, queries, lambda *kept: None).run())
    loop.close()
    return loop.now


def barrier(latency: dict[str, float], calls: int, places: int) -> float:
    """Simulated seconds where all questions take a step before any goes on, in batches of four times the places."""
    total = 0.0
    for i in range(calls):
        for start in range(0, QUESTIONS, 4 * places):
            part = [latency[f"q{q} {i}"] for q in range(start, min(QUESTIONS, start + 4 * places))]
            free = [0.0] * places
            for seconds in part:
                heapq.heapreplace(free, free[0] + seconds)
            total += max(free)
    return total


def pool(latency: dict[str, float], calls: int, places: int) -> float:
    """Simulated seconds of a plain pool: each place takes one whole question after the other."""
    free = [0.0] * places
    for q in range(QUESTIONS):
        heapq.heapreplace(free, free[0] + sum(latency[f"q{q} {i}"] for i in range(calls)))
    return max(free)


def orders(latency: dict[str, float], places: int, seed: int) -> tuple[float, float]:
    """Simulated seconds of a pool of places for one call a question: in the luckiest of many orders, and longest first.

    No engine can choose the second, since it does not know how long a reply will take.
    """

    def seconds(calls: list[float]) -> float:
        free = [0.0] * places
        for one in calls:
            heapq.heapreplace(free, free[0] + one)
        return max(free)

    rng, calls = random.Random(seed), list(latency.values())
    lucky = min(seconds(rng.sample(calls, len(calls))) for _ in range(ORDERS))
    return lucky, seconds(sorted(calls, reverse=True))


def simulate(seed: int) -> list[dict[str, Any]]:
    """A row for each latency, number of calls, and number of places."""
    rows = []
    for name in LATENCIES:
        for calls in (1, 3, 12):
            for places in (8, 64):
                latency = drawn(name, calls, seed)
                least = bound(latency, places)
                shares = {run.__name__: least / run(latency, calls, places) for run in (engine, pool, barrier)}
                rows.append({"latency": name, "calls": calls, "places": places, "bound_s": least, **shares})
    return rows


def real(places: int, questions: int, seed: int) -> dict[str, float]:
    """Real seconds over the bound: our engine and lm-eval's own model, against one slow server on this machine."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    from lm_eval_rag.harness.generators.lm import LMGenerator
    from lm_eval_rag.harness.generators.spec import ModelSpec
    from lm_eval_rag.harness.plugin.engine import run

    rng = random.Random(seed)
    latency = {f"q{i} 0": 0.4 * LATENCIES["1 in 16 slow"](rng) for i in range(questions)}

    def slow(prompt: str) -> str:
        time.sleep(latency[prompt])
        return "x"

    with ChatServer(slow) as server:
        given = {"base_url": server.url, "model": "any", "num_concurrent": places}
        generator = LMGenerator(ModelSpec("local-chat-completions", given))
        generator.load()
        began = time.perf_counter()
        run(method(1), [Query(f"q{i}", "") for i in range(questions)], generator=generator)
        ours = time.perf_counter() - began
        stock = get_model("local-chat-completions").create_from_arg_obj(given, {})
        requests = [
            Instance(
                request_type="generate_until",
                doc={},
                arguments=(stock.apply_chat_template([{"role": "user", "content": prompt}]), {"until": ["\n"]}),
                idx=0,
            )
            for prompt in latency
        ]
        began = time.perf_counter()
        stock.generate_until(requests)
        theirs = time.perf_counter() - began
    least = bound(latency, places)
    return {
        "places": places,
        "questions": questions,
        "bound_s": least,
        "engine": least / ours,
        "lm_eval": least / theirs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="also against a real server, in real seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="file for the rows")
    chosen = parser.parse_args()
    rows = simulate(chosen.seed)
    print(f"{'latency':14}{'calls':>6}{'places':>7}{'bound, s':>10}   share of the bound: engine, plain pool, barrier")
    for row in rows:
        shares = "".join(f"{100 * row[name]:>9.1f} %" for name in ("engine", "pool", "barrier"))
        print(f"{row['latency']:14}{row['calls']:>6}{row['places']:>7}{row['bound_s']:>10.1f}{shares}")
    for name in LATENCIES:
        latency = drawn(name, 1, chosen.seed)
        lucky, known = (bound(latency, 64) / one for one in orders(latency, 64, chosen.seed))
        said = f"luckiest of {ORDERS:,} orders {100 * lucky:.1f} %, longest first {100 * known:.1f} %"
        print(f"{name}, 1 call, 64 places: {said}")
    if chosen.real:
        for places, questions in ((8, 200), (64, 1000)):
            row = real(places, questions, chosen.seed)
            rows.append(row)
            print(
                f"real server, 1 in 16 slow, {places} places, {questions} questions: engine "
                f"{100 * row['engine']:.1f} % of the bound, lm_eval's own model {100 * row['lm_eval']:.1f} %"
            )
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
