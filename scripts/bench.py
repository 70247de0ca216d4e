"""All benchmarks beside their goals: ``make bench`` (fifteen minutes) and ``make bench-quick`` (two).

    python scripts/bench.py --out bench
    python scripts/bench.py --out bench --quick

Each script measures ratios against a named peer, alternately in one run, and writes JSON into the folder. The table at
the end has the minimum, median and maximum over the rounds. A goal is met if the median meets it; where it is missed,
the table says what limits it. The times are those of two free cores. Benchmarks whose data are missing are named.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from measures import Measure, read, write

SCRIPTS = Path(__file__).parent
SHARDS = ("bench_shards.py", "--vectors", "100000", "--rounds", "3")
QUICK = {  # name -> script and arguments
    "shards_float16": (*SHARDS, "--queries", "1", "100", "1000"),
    "shards_int8": (*SHARDS, "--queries", "100", "--store", "int8"),
    "servers": ("bench_fleet.py", "--prompts", "96"),
}
SETS = ("ruleqa_i", "ruleqa_y", "ruleqa_f", "ruleqa_n", "ruleqa_w")
FULL = {
    **QUICK,
    "commands": ("bench_commands.py", "--rounds", "2"),
    "encoding": ("bench_dense.py", "ruleqa_i", "--documents", "1000", "--queries", "200"),
    "bm25": ("bench_bm25.py", *SETS, "--queries", "2048", "--batch", "1024"),
    "passages": ("bench_passages.py", "--passages", "100000"),
    "mining": ("bench_mining.py", "--corpus", "ruleqa_i", "--kinds", "temporal", "--rounds", "1"),
    "mining_growth": ("bench_mining.py", "--facts", "1000000", "--kinds", "temporal", "--rounds", "1"),
    "harness": ("bench_overhead.py", "--limit", "200", "--rounds", "3"),
    "web": ("bench_web.py", "--rounds", "2", "--speed"),
    "shards_million": ("bench_shards.py", "--vectors", "1000000", "--queries", "1", "1000", "--rounds", "1"),
}
WIDENED = "torch widens float16 at 5 to 8 GB/s a core, then come lengths and products"
PRODUCTS = "products: 32e9 multiplications a second and core"
READING = "x the time of reading the files"


@dataclass(frozen=True, slots=True)
class Goal:
    """What a measure should be.

    Args:
        name: Of the measure, to its beginning.
        unit: Of the measure.
        most: What it may be at most; None if there is no such goal.
        least: What it must be at least.
        limit: What limits it where the goal is missed.
    """

    name: str
    unit: str
    most: float | None = None
    least: float | None = None
    limit: str = "not looked into"

    def fits(self, measure: Measure) -> bool:
        """Whether it is a goal of this measure."""
        return measure.name.startswith(self.name) and measure.unit == self.unit

    def met(self, measure: Measure) -> bool:
        """Whether the median meets it."""
        middle = measure.spread[1]
        return (self.most is None or middle <= self.most) and (self.least is None or middle >= self.least)

    @property
    def text(self) -> str:
        """As the table shows it."""
        return f"at most {self.most:g}" if self.most is not None else f"at least {self.least:g}"


GOALS = (
    Goal("search, 100,000 x 384 float16, 1 queries", READING, most=1.5, limit=WIDENED),
    Goal("search, 1,000,000 x 384 float16, 1 queries", READING, most=1.5, limit=WIDENED),
    Goal("search", READING, most=1.5, limit=PRODUCTS),
    Goal("search", "GB", most=8),
    Goal("start of lm_eval", "CPU s", most=1.2, limit="datasets and pandas, which lm_eval imports, take 0.7 s"),
    Goal("building RuleQA", "CPU s", most=15),
    Goal("building RuleQA", "GB", most=1),
    Goal("documents encoded, ours, bfloat16", "x sentence-transformers' rate", least=1.7, limit="bfloat16 of the CPU"),
    Goal("BM25, question + rule", "x bm25s' rate", least=2),
    Goal("rules of lengths 1, 2, 3, ruleqa_i", "CPU s", most=60),
    Goal(
        "harness over the raw generator",
        "% of its time",
        most=3,
        limit="rules, BM25 and journal, which it has too",
    ),
    Goal("web pages, fast", "x trafilatura's rate", least=7.8),
)


def main() -> int:
    """Run all, print the table, and return the number of benchmarks that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--quick", action="store_true", help="those of two minutes")
    parser.add_argument("--only", nargs="+", choices=sorted(FULL), metavar="NAME", help="some of them")
    parser.add_argument("--table", action="store_true", help="run nothing: the table of the last run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    runs = QUICK if options.quick else {name: FULL[name] for name in options.only or FULL}
    failed = [] if options.table else [name for name, command in runs.items() if not run(name, command, options.out)]
    print(table([one for name in runs for one in read(options.out / f"{name}.json")]))
    if failed:
        print(f"failed, so without lines in the table: {', '.join(failed)}")
    return len(failed)


def run(name: str, command: tuple[str, ...], out: Path) -> bool:
    """Run one benchmark with one thread; False if it failed."""
    script, *arguments = command
    print(f"== {name}: {script} {' '.join(arguments)}", flush=True)
    began, path = time.perf_counter(), out / f"{name}.json"
    path.unlink(missing_ok=True)
    line = [sys.executable, str(SCRIPTS / script), *arguments, "--json", str(path)]
    done = subprocess.run(line, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    seconds = time.perf_counter() - began
    print(f"-- {name}: {seconds:.0f} s\n", flush=True)
    write(out / f"{name}.seconds.json", [Measure(name, "s by the clock", [seconds])])
    return done.returncode == 0


def table(measures: list[Measure]) -> str:
    """Markdown: each measure with its goal."""
    lines = ["| what | unit | min | median | max | goal | |", "|---|---|---:|---:|---:|---|---|"]
    for measure in measures:
        goal = next((goal for goal in GOALS if goal.fits(measure)), None)
        verdict = "" if goal is None else "met" if goal.met(measure) else f"missed: {goal.limit}"
        numbers = " | ".join(f"{number:.3g}" for number in measure.spread)
        lines.append(f"| {measure.name} | {measure.unit} | {numbers} | {goal.text if goal else ''} | {verdict} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
