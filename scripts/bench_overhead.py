"""Overhead of the harness: rulerag_icl on ruleqa_demo, compared with lm_eval's hf model on the same prompts.

    python scripts/bench_overhead.py --limit 200

Both use the embedded checkpoint with the same batch size in one process, after a warm-up, and take turns. The output is
the seconds of both, their ratio, and the number of equal answers.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from lm_eval.api.instance import Instance

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.engine import Engine
from lm_eval_rag.methods.rulerag_icl import rulerag_icl
from lm_eval_rag.tasks.ruleqa_demo.build import build


def questions(limit: int) -> list[Query]:
    """The first questions of ruleqa_demo."""
    corpus = build()
    rows = pq.read_table(cache_dir() / corpus / "queries.parquet").to_pylist()
    return [Query(row["id"], row["text"], row["time"], corpus) for row in rows if row["in_main"]][:limit]


def ours(generator: LMGenerator, queries: list[Query], journal: Path) -> tuple[float, list[Any]]:
    """Seconds of a whole run, including rules, retrieval and journal; and its results."""
    began = time.perf_counter()
    results = Engine(Corpora(), generator, Journal(journal)).run(rulerag_icl, queries)
    return time.perf_counter() - began, results


def raw(generator: LMGenerator, prompts: list[str]) -> tuple[float, list[str]]:
    """Seconds of lm_eval's model on the same prompts; and its answers."""
    options = {"until": ["\n"], "max_gen_toks": 32}
    requests = [Instance("generate_until", {}, (prompt, options), 0) for prompt in prompts]
    began = time.perf_counter()
    answers = generator.lm.generate_until(requests, disable_tqdm=True)
    return time.perf_counter() - began, answers


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    generator, queries = LMGenerator(ModelSpec()), questions(options.limit)
    times: dict[str, list[float]] = {"harness": [], "raw": []}
    with tempfile.TemporaryDirectory() as folder:
        _, results = ours(generator, queries, Path(folder) / "warm.sqlite")
        prompts = [next(s.request for s in trace.steps if s.ask == "Generate") for _, trace in results]
        for i in range(options.rounds):
            seconds, results = ours(generator, queries, Path(folder) / f"{i}.sqlite")
            times["harness"].append(seconds)
            seconds, answers = raw(generator, prompts)
            times["raw"].append(seconds)
    equal = sum(answer.text == text.strip() for (answer, _), text in zip(results, answers, strict=True))
    harness, plain = (statistics.median(times[name]) for name in ("harness", "raw"))
    print(f"{len(prompts)} prompts, {options.rounds} rounds, medians; {equal} of {len(prompts)} answers are equal")
    print(f"harness (rules, BM25, prompts, journal, generation)  {harness:7.2f} s")
    print(f"lm_eval's hf model on the same prompts               {plain:7.2f} s")
    print(f"ratio                                                {harness / plain:7.3f}")


if __name__ == "__main__":
    main()
