"""Mining of rules of lengths 1, 2 and 3: CPU seconds and peak memory, on a corpus and on synthetic graphs that grow.

    python scripts/bench_mining.py --corpus ruleqa_i --facts 100000 1000000 --rounds 3 --json FILE

Each measurement runs in a process of its own, with one thread. A synthetic graph of n facts has n / 10 entities, 200
relations and 365 times; half of the ends of its facts are drawn uniformly, the others with the weight 1 / sqrt(rank),
so that the number of walks grows little faster than that of facts. With larger hubs it grows up to quadratically, and
so does the time of length 2. The minimum, median and maximum over all rounds are printed. The peer, TLogic's published
code, is not run here: it takes 30 to 40 minutes of CPU for lengths 1 to 3 on ICEWS14 with 200 walks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from measures import Measure, write

from lm_eval_rag._build import corpus_of
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.rules.mining import mine_static, mine_temporal
from lm_eval_rag.harness.rules.mining_paths import mine_length2
from lm_eval_rag.harness.rules.mining_sampled import mine_length3

RELATIONS, TIMES, PER_ENTITY, HUBS = 200, 365, 10, 0.5
MINERS: dict[int, Callable[[pl.DataFrame, bool], pl.DataFrame]] = {
    1: lambda facts, temporal: mine_temporal(facts) if temporal else mine_static(facts),
    2: lambda facts, temporal: mine_length2(facts, temporal=temporal, min_support=2),
    3: lambda facts, temporal: mine_length3(facts, temporal=temporal, min_support=2),
}


def main() -> None:
    """Print one line per graph, kind and length."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", nargs="*", default=[], metavar="TASK", help="tasks whose corpus is mined")
    parser.add_argument("--facts", type=int, nargs="*", default=[100_000], help="sizes of synthetic graphs")
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 2, 3], choices=sorted(MINERS))
    parser.add_argument("--kinds", nargs="+", default=["temporal", "static"], choices=["temporal", "static"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    rows = [
        _row(graph, kind, length, [_alone(graph, kind == "temporal", length) for _ in range(options.rounds)])
        for graph in (*options.corpus, *options.facts)
        for kind in options.kinds
        for length in options.lengths
    ]
    measures = [Measure(f"rules of length {r['length']}, {r['about']}", "CPU s", r["seconds"]) for r in rows]
    lengths = ", ".join(map(str, options.lengths))
    measures += [Measure(f"rules of lengths {lengths}, {about}", "CPU s", total) for about, total in _totals(rows)]
    peaks = [Measure(f"rules of length {r['length']}, {r['about']}", "GB", [r["peak_bytes"] / 1e9]) for r in rows]
    write(options.json, [*measures, *peaks], {**vars(options), "results": rows})


def _totals(rows: list[dict[str, Any]]) -> list[tuple[str, list[float]]]:
    """For each graph and kind the seconds of all lengths together, by round."""
    graphs = dict.fromkeys(row["about"] for row in rows)
    of = {graph: [row["seconds"] for row in rows if row["about"] == graph] for graph in graphs}
    return [(graph, [sum(each) for each in zip(*seconds, strict=True)]) for graph, seconds in of.items()]


def _row(graph: Any, kind: str, length: int, measured: list[Any]) -> dict[str, Any]:
    seconds = sorted(one["seconds"] for one in measured)
    low, middle, high = seconds[0], seconds[len(seconds) // 2], seconds[-1]
    peak = max(one["peak_bytes"] for one in measured)
    facts, rules = measured[0]["facts"], measured[0]["rules"]
    print(f"{graph!s:>10} {kind:8} {facts:>10,} facts, length {length}: {rules:>9,} rules  CPU s "
          f"min {low:.2f}  median {middle:.2f}  max {high:.2f}  peak {peak / 1e9:.2f} GB", flush=True)  # fmt: skip
    name = f"{graph}, {kind}" if isinstance(graph, str) else f"{graph:,} synthetic facts, {kind}"
    about = {"about": name, "length": length, "facts": facts, "rules": rules, "seconds": seconds}
    return {**about, "peak_bytes": peak}


def _alone(graph: str | int, temporal: bool, length: int) -> dict[str, Any]:
    """One measurement in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return dict(pool.apply(_measure, (graph, temporal, length)))


def _measure(graph: str | int, temporal: bool, length: int) -> dict[str, Any]:
    facts = synthetic(graph) if isinstance(graph, int) else _corpus(graph)
    began = time.process_time()
    rules = MINERS[length](facts, temporal)
    seconds = time.process_time() - began
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return {"facts": facts.height, "rules": rules.height, "seconds": seconds, "peak_bytes": peak}


def _corpus(task: str) -> pl.DataFrame:
    return pl.read_parquet(
        cache_dir() / corpus_of(task) / "corpus.parquet", columns=["subject", "relation", "object", "time"]
    )


def synthetic(facts: int, seed: int = 0) -> pl.DataFrame:
    """A graph of about ``facts`` facts, as whole numbers."""
    rng = np.random.default_rng(seed)
    entities = max(facts // PER_ENTITY, 2)
    weight = np.cumsum(1 / np.arange(1, entities + 1) ** HUBS)
    hubs = np.searchsorted(weight, rng.random((2, facts)) * weight[-1])
    ends = np.where(rng.random((2, facts)) < 0.5, hubs, rng.integers(0, entities, (2, facts)))
    columns = {"subject": ends[0], "relation": rng.integers(0, RELATIONS, facts), "object": ends[1]}
    return pl.DataFrame({**columns, "time": rng.integers(0, TIMES, facts)})


if __name__ == "__main__":
    main()
