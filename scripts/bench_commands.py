"""CPU seconds and peak memory of the building of RuleQA and the start of lm_eval, in processes of their own.

    python scripts/bench_commands.py --rounds 3 --json FILE

``build`` builds all five RuleQA sets into an empty cache, from the upstream files of ``$LM_EVAL_RAG_MIRROR`` (without
it, they are downloaded in the first round). ``start`` is what ``lm_eval --tasks ruleqa_demo`` does before the first
question: the imports of its command line and the loading of the task. The peer is lm_eval without us, which reads the
list of its own tasks. Both take turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measures import Measure, ratios, write

OURS = "import lm_eval.__main__; from lm_eval.tasks import TaskManager; TaskManager().load(['ruleqa_demo'])"
STOCK = "import lm_eval.__main__; from lm_eval.tasks import TaskManager; TaskManager()"
BUILD = ("-c", "from lm_eval_rag.cli import main; raise SystemExit(main(['build', 'ruleqa']))")


def main() -> None:
    """Print one line for each command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    run("-c", OURS)  # builds the demo's data, and compiles the modules
    turns = [(run("-c", OURS), run("-c", STOCK, LM_EVAL_RAG_AUTOLOAD="0")) for _ in range(options.rounds)]
    ours, stock = ([each[of][0] for each in turns] for of in (0, 1))
    with tempfile.TemporaryDirectory() as folder:
        caches = (f"{folder}/{number}" for number in range(options.rounds))
        builds = [run(*BUILD, LM_EVAL_RAG_CACHE=cache) for cache in caches]
    measures = [
        Measure("start of lm_eval with our tasks", "CPU s", ours),
        Measure("start of lm_eval with our tasks", "x lm_eval's time without us", ratios(ours, stock)),
        Measure("building RuleQA, all five", "CPU s", [seconds for seconds, _ in builds]),
        Measure("building RuleQA, all five", "GB", [peak for _, peak in builds]),
    ]
    for measure in measures:
        low, middle, high = measure.spread
        print(f"{measure.name:34} {measure.unit:28} min {low:.2f}  median {middle:.2f}  max {high:.2f}")
    write(options.json, measures)


def run(*arguments: str, **environment: str) -> tuple[float, float]:
    """(CPU seconds, peak memory in GB) of a Python process with one thread, and its children."""
    one_thread = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, *arguments], env={**os.environ, **one_thread, **environment}, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)[:80]} failed with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6


if __name__ == "__main__":
    main()
