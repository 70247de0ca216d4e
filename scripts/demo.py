"""The demo: compares four methods on the embedded benchmark. Prints every command that it runs.

Needs no network and no GPU. The last output is one table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

METHODS = ("rule_vote", "standard_rag", "rulerag_icl", "rulerag_ft")


def run(*command: str) -> None:
    """Print a command, run it with this Python's scripts, and stop the demo if it fails."""
    print(f"\n$ {' '.join(command)}", flush=True)
    done = subprocess.run([str(Path(sys.executable).parent / command[0]), *command[1:]], check=False)
    if done.returncode:
        sys.exit(f"demo: {command[0]} ended with exit code {done.returncode}")


def main() -> None:
    """Run each method on ruleqa_demo, then the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo_results", help="folder of the runs (default: %(default)s)")
    parser.add_argument("--limit", help="use only the first N questions")
    options = parser.parse_args()
    began = time.perf_counter()
    output = Path(options.output) / time.strftime("%Y%m%d-%H%M%S")
    limit = ("--limit", options.limit) if options.limit else ()
    folders = [str(output / method) for method in METHODS]
    for method, folder in zip(METHODS, folders, strict=True):
        run("lm_eval", "--model", method, "--tasks", "ruleqa_demo", "--output_path", folder, "--log_samples", *limit)
    run("lm-eval-rag", "report", *folders)
    print(f"\ndemo: {time.perf_counter() - began:.0f} s, runs in {output}")


if __name__ == "__main__":
    main()
