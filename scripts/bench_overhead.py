"""Overhead of the harness, in two measures.

    python scripts/bench_overhead.py --tasks ruleqa --model rule_vote
    python scripts/bench_overhead.py --limit 200

With ``--tasks``: CPU seconds and peak memory of a whole ``lm_eval`` run without a journal, what of it is retrieval
(with rules), scoring and the method's own code, and the rest by question. The floor is ``lm_eval`` with a silent model
on a task of one question; as in runs of ours, torch is not imported for the description of the machine. ``speed`` is
the CPU seconds of a fixed loop just before: other work on the machine slows all of it.

Without: rulerag_icl on ruleqa_demo, compared with lm_eval's hf model on the same prompts. Both use the embedded
checkpoint with the same batch size in one process, after a warm-up, and take turns. The output is the seconds of both,
their ratio, and the number of equal answers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import wraps
from pathlib import Path
from typing import Any

from measures import Measure, ratios, write

TRIVIAL = """
task: one_question
dataset_path: json
dataset_kwargs: {{data_files: {file}}}
test_split: train
output_type: generate_until
doc_to_text: "{{{{q}}}}"
doc_to_target: "{{{{a}}}}"
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


def run_inside(arguments: list[str]) -> None:
    """Run lm_eval in this process, and print what it took, as one line of JSON."""
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.registry import get_model, register_model

    from lm_eval_rag import _startup
    from lm_eval_rag.harness.backends.corpora import RetrieveBackend, RulesBackend
    from lm_eval_rag.harness.plugin.task import RagTask

    seconds: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)

    def timed(owner: type, name: str, part: str) -> None:
        stock = getattr(owner, name)

        @wraps(stock)
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return stock(*args, **kwargs)
            finally:
                seconds[part] += time.thread_time() - began
                counts[part] += 1

        setattr(owner, name, call)

    timed(RetrieveBackend, "serve", "retrieval")
    timed(RulesBackend, "serve", "retrieval")
    timed(RagTask, "process_results", "scoring")

    def own_code(method: Any) -> Any:
        @wraps(method)
        def plan(*args: Any, **kwargs: Any) -> Any:
            inner, reply = method(*args, **kwargs), None
            while True:
                began = time.thread_time()
                try:
                    ask = inner.send(reply)
                except StopIteration as stop:
                    return stop.value
                finally:
                    seconds["method"] += time.thread_time() - began
                reply = yield ask

        return plan

    if "silent" not in arguments:
        model = get_model(arguments[arguments.index("--model") + 1])
        model.method = staticmethod(own_code(model.method))
    if "silent" in arguments:

        class Silent(LM):  # type: ignore[misc]
            loglikelihood = loglikelihood_rolling = None

            def __init__(self, **arguments: Any) -> None:
                super().__init__()

            def generate_until(self, requests: list[Any]) -> list[str]:
                return ["" for _ in requests]

        register_model("silent")(Silent)
        _startup.MODELS += ("silent",)  # whose runs do not import torch to describe the machine
    sys.argv = ["lm_eval", *arguments]
    cli_evaluate()
    used = resource.getrusage(resource.RUSAGE_SELF)
    whole = {"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1024, "questions": counts["scoring"]}
    print(json.dumps({**whole, **seconds}))


def measured(*arguments: str) -> dict[str, float]:
    """What a run of lm_eval took, in a process of its own with one thread."""
    command = [sys.executable, __file__, "--inside", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def speed() -> float:
    """CPU seconds of a fixed loop."""
    began, total = time.process_time(), 0
    for i in range(5_000_000):
        total += i
    return time.process_time() - began


def whole_run(tasks: str, model: str, rounds: int) -> None:
    """Print what a run takes; of several rounds, the one with the fewest CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        rows.write_text('{"q": "who?", "a": "me"}\n')
        (Path(folder) / "one_question.yaml").write_text(TRIVIAL.format(file=rows))
        floors = [
            measured("--include_path", folder, "--tasks", "one_question", "--model", "silent") for _ in range(rounds)
        ]
    before = speed()
    asked = ("--tasks", tasks, "--model", model, "--model_args", "journal=off")
    runs = [measured(*asked) for _ in range(rounds)]
    floor, run = (min(each, key=lambda one: one["cpu"]) for each in (floors, runs))
    rest = run["cpu"] - floor["cpu"] - run["retrieval"] - run["scoring"] - run["method"]
    print(f"{model} on {tasks}: {run['questions']:.0f} questions, best of {rounds}; speed {before:.2f} s")
    print(f"CPU seconds                     {run['cpu']:8.2f}    floor {floor['cpu']:.2f}")
    print(f"peak memory, MB                 {run['peak']:8.0f}    floor {floor['peak']:.0f}")
    print(f"retrieval, with rules, CPU s    {run['retrieval']:8.2f}")
    print(f"scoring, CPU s                  {run['scoring']:8.2f}")
    print(f"the method's own code, CPU s    {run['method']:8.2f}")
    print(f"all else above the floor, CPU s {rest:8.2f}")
    print(f"all else, ms a question         {1000 * rest / run['questions']:8.3f}")


def questions(limit: int) -> list[Any]:
    """The first questions of ruleqa_demo."""
    import pyarrow.parquet as pq

    from lm_eval_rag.harness.common.paths import cache_dir
    from lm_eval_rag.harness.core.types import Query
    from lm_eval_rag.tasks.ruleqa_demo.build import build

    corpus = build()
    rows = pq.read_table(cache_dir() / corpus / "queries.parquet").to_pylist()
    return [Query(row["id"], row["text"], row["time"], corpus) for row in rows if row["in_main"]][:limit]


def ours(generator: Any, queries: list[Any], journal: Path) -> tuple[float, list[Any]]:
    """Seconds of a whole run, including rules, retrieval and journal; and its results."""
    from lm_eval_rag.harness.backends.corpora import Corpora
    from lm_eval_rag.harness.core.journal import Journal
    from lm_eval_rag.harness.plugin.engine import Engine
    from lm_eval_rag.methods.rulerag_icl import rulerag_icl

    began = time.perf_counter()
    results = Engine(Corpora(), generator, Journal(journal)).run(rulerag_icl, queries)
    return time.perf_counter() - began, results


def raw(generator: Any, prompts: list[str]) -> tuple[float, list[str]]:
    """Seconds of lm_eval's model on the same prompts; and its answers."""
    from lm_eval.api.instance import Instance

    options = {"until": ["\n"], "max_gen_toks": 32}
    requests = [Instance("generate_until", {}, (prompt, options), 0) for prompt in prompts]
    began = time.perf_counter()
    answers = generator.lm.generate_until(requests, disable_tqdm=True)
    return time.perf_counter() - began, answers


def prompts_compared(limit: int, rounds: int, path: Path | None) -> None:
    """Print the seconds of a run with a generator, and of lm_eval's hf model on its prompts."""
    from lm_eval_rag.harness.generators.lm import LMGenerator
    from lm_eval_rag.harness.generators.spec import ModelSpec

    generator, queries = LMGenerator(ModelSpec()), questions(limit)
    times: dict[str, list[float]] = {"harness": [], "raw": []}
    with tempfile.TemporaryDirectory() as folder:
        _, results = ours(generator, queries, Path(folder) / "warm.sqlite")
        prompts = [next(s.request for s in trace.steps if s.ask == "Generate") for _, trace in results]
        for i in range(rounds):
            seconds, results = ours(generator, queries, Path(folder) / f"{i}.sqlite")
            times["harness"].append(seconds)
            seconds, answers = raw(generator, prompts)
            times["raw"].append(seconds)
    equal = sum(answer.text == text.strip() for (answer, _), text in zip(results, answers, strict=True))
    harness, plain = (statistics.median(times[name]) for name in ("harness", "raw"))
    print(f"{len(prompts)} prompts, {rounds} rounds, medians; {equal} of {len(prompts)} answers are equal")
    print(f"harness (rules, BM25, prompts, journal, generation)  {harness:7.2f} s")
    print(f"lm_eval's hf model on the same prompts               {plain:7.2f} s")
    print(f"ratio                                                {harness / plain:7.3f}")
    share = [100 * (ratio - 1) for ratio in ratios(times["harness"], times["raw"])]
    write(path, [Measure("harness over the raw generator", "% of its time", share)], {"limit": limit})


def main() -> None:
    """Print the table that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks")
    parser.add_argument("--model", default="rule_vote")
    parser.add_argument("--json", type=Path, help="of the second measure")
    parser.add_argument("--inside", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        run_inside(options.inside)
    elif options.tasks:
        whole_run(options.tasks, options.model, options.rounds)
    else:
        prompts_compared(options.limit, options.rounds, options.json)


if __name__ == "__main__":
    main()
