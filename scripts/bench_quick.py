"""The quick benchmarks, one after the other: ``make bench-quick``.

    python scripts/bench_quick.py --out bench

Each prints ratios against a named peer and writes them as JSON into the folder. They take about two minutes on two free
cores, and longer where other processes run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = Path(__file__).parent
RUNS = {  # name -> script and arguments; those with --json write the file themselves
    "shards_float16": ("bench_shards.py", "--vectors", "100000", "--queries", "1", "100", "1000", "--rounds", "3"),
    "shards_int8": ("bench_shards.py", "--vectors", "100000", "--queries", "100", "--rounds", "3", "--store", "int8"),
    "servers": ("bench_fleet.py", "--prompts", "96"),
}


def main() -> int:
    """Run all, and return the number of those that failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed, seconds = 0, {}
    for name, (script, *arguments) in RUNS.items():
        print(f"== {name}: {script} {' '.join(arguments)}", flush=True)
        began = time.perf_counter()
        command = [sys.executable, str(SCRIPTS / script), *arguments, "--json", str(options.out / f"{name}.json")]
        failed += subprocess.run(command, check=False).returncode != 0
        seconds[name] = round(time.perf_counter() - began, 1)
    (options.out / "seconds.json").write_text(json.dumps(seconds, indent=1))
    print(f"{sum(seconds.values()):.0f} s: {seconds}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
