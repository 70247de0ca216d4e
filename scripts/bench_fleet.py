"""Prompts per second over several servers of one model, compared with lm_eval's own model on one server.

    python scripts/bench_fleet.py --prompts 96 --json FILE

Each local server answers four requests at once, after 100 ms each. The engines take turns; each ratio is of two rates
of one round, and the minimum, median and maximum over all rounds are printed. The answers of all must be equal.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from chat_server import ChatServer
from measures import Measure, ratios, write

from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec

AT_ONCE, SECONDS, ROUNDS, SERVERS = 4, 0.1, 3, 3
NAME = "local-chat-completions"


def main() -> None:
    """Print one line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--prompts", type=int, default=96)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    prompts = [f"prompt {i}" for i in range(options.prompts)]
    with ExitStack() as stack:
        urls = [stack.enter_context(_answering()).url for _ in range(SERVERS)]
        engines: dict[str, Callable[[], Sequence[str]]] = {
            "lm_eval, 1 server": _stock(urls[0], prompts),
            "ours, 1 server": _ours(urls[:1], prompts),
            f"ours, {SERVERS} servers": _ours(urls, prompts),
        }
        rates = _rates(engines, prompts)
    measures = []
    for name, own in rates.items():
        measure = Measure(f"prompts a second, {name}", "x lm_eval's rate", ratios(own, rates["lm_eval, 1 server"]))
        low, middle, high = measure.spread
        measures.append(measure)
        print(f"{name:18}{sorted(own)[len(own) // 2]:8.1f} prompts a second   of lm_eval's: "
              f"min {low:.2f}  median {middle:.2f}  max {high:.2f}")  # fmt: skip
    write(options.json, measures, {"prompts": options.prompts, "rates": rates})


def _answering() -> ChatServer:
    """A server that answers with the prompt, turned round."""
    places = threading.Semaphore(AT_ONCE)

    def reply(prompt: str) -> str:
        with places:
            time.sleep(SECONDS)
        return prompt[::-1]

    return ChatServer(reply)


def _ours(urls: list[str], prompts: list[str]) -> Callable[[], Sequence[str]]:
    arguments = {"base_url": urls if len(urls) > 1 else urls[0], "model": "any", "num_concurrent": AT_ONCE}
    generator = LMGenerator(ModelSpec(NAME, arguments))
    return lambda: [str(text) for text in generator.generate(prompts, Decoding(max_tokens=8), [0] * len(prompts))]


def _stock(url: str, prompts: list[str]) -> Callable[[], Sequence[str]]:
    import lm_eval.models  # noqa: F401
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    model = get_model(NAME)(base_url=url, model="any", num_concurrent=AT_ONCE)
    options = {"until": [], "max_gen_toks": 8, "stop": None}
    messages = [json.dumps([{"role": "user", "content": prompt}]) for prompt in prompts]

    def run() -> Sequence[str]:
        from lm_eval.models.api_models import JsonChatStr

        asked = [(JsonChatStr(message), dict(options)) for message in messages]
        instances = [Instance("generate_until", {}, request, i) for i, request in enumerate(asked)]
        return list(model.generate_until(instances, disable_tqdm=True))

    return run


def _rates(engines: dict[str, Callable[[], Sequence[str]]], prompts: list[str]) -> dict[str, list[float]]:
    expected = [prompt[::-1] for prompt in prompts]
    rates: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            began = time.perf_counter()
            answers = engine()
            rates[name].append(len(prompts) / (time.perf_counter() - began))
            if list(answers) != expected:
                raise SystemExit(f"{name} gives other answers: {answers[:2]}")
    return rates


if __name__ == "__main__":
    main()
