"""Seconds and memory of `lm-eval-rag verify`: of one submission, and of refusing versions of it that are wrong.

    lm_eval --tasks ruleqa --model rule_vote --output_path runs/rule_vote --log_samples
    lm-eval-rag submit runs/rule_vote --name "Rule vote" --team "A team" --out entry
    python scripts/bench_verify.py entry

Each row is a process of its own, as CI starts it. The limits: a refusal takes a second of computing and 500 MB, a full
RuleQA submission a minute. The first row also prepares what later refusals look at.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lm_eval_rag.leaderboards.submissions.form import CARD, FILE_BYTES, LINES, PREDICTIONS

COMMAND = (
    "import sys; from lm_eval_rag.cli import main; status = main(['verify', sys.argv[1]]);"
    "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'));"
    "print(peak.split()[1], file=sys.stderr); sys.exit(status)"
)


def main() -> None:
    """Print one line for each version of the submission."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("entry", type=Path, help="the folder of a submission")
    entry: Path = parser.parse_args().entry
    print(f"{'':32} {'verdict':9} {'wall s':>7} {'CPU s':>7} {'MB':>6}")
    measure("as it is", entry)
    for name, spoil in SPOILED.items():
        with TemporaryDirectory() as place:
            copy = Path(place) / "entry"
            shutil.copytree(entry, copy)
            spoil(copy)
            measure(name, copy)


def measure(name: str, folder: Path) -> None:
    """Verify one folder in a new process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-c", COMMAND, str(folder)], capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int(done.stderr.splitlines()[-1]) / 1024
    print(f"{name:32} {'accepted' if verdict['accepted'] else 'refused':9} {wall:7.2f} {cpu:7.2f} {peak:6.0f}")


def last(folder: Path) -> Path:
    """The file of predictions that is read last."""
    task = list(json.loads((folder / CARD).read_text(encoding="utf-8"))["tasks"])[-1]
    return folder / PREDICTIONS / f"{task}.jsonl"


def change_line(**fields: Any) -> Callable[[Path], None]:
    """Changes the last line of the last file."""

    def change(folder: Path) -> None:
        lines = last(folder).read_text(encoding="utf-8").splitlines()
        lines[-1] = json.dumps({**json.loads(lines[-1]), **fields})
        last(folder).write_text("\n".join(lines) + "\n", encoding="utf-8")

    return change


def fill(line: dict[str, Any]) -> Callable[[Path], None]:
    """Fills every file with such lines up to the limits, and ends the last one with a line that is no JSON."""

    def write(folder: Path) -> None:
        files = sorted((folder / PREDICTIONS).iterdir())
        for path in files[2:]:
            path.write_text("")
        for path in files[:2]:
            size = len(json.dumps({"id": "q000000", **line})) + 1
            count = min(LINES, (FILE_BYTES - 100_000) // size)
            path.write_text("".join(json.dumps({"id": f"q{i:06}", **line}) + "\n" for i in range(count)))
        with last(folder).open("a") as file:
            file.write("x\n")

    return write


def link_out(folder: Path) -> None:
    """A link in place of the last file."""
    last(folder).unlink()
    os.symlink("/etc/passwd", last(folder))


def other_data(folder: Path) -> None:
    """Predictions for other data."""
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    card["tasks"][last(folder).stem]["data"] = "0" * 16
    (folder / CARD).write_text(json.dumps(card), encoding="utf-8")


SPOILED: dict[str, Callable[[Path], None]] = {
    "a link": link_out,
    "a key that there is not": change_line(em=1.0),
    "an unknown question": change_line(id="another"),
    "an unknown passage": change_line(retrieved=["another"]),
    "other data": other_data,
    "16 MB of ids": fill({"answer": "x", "retrieved": ["a"] * 500}),
    "16 MB of rules and triples": fill(
        {
            "answer": "x",
            "rules": [{"head": "a", "body": "b"}] * 30,
            "evidence": [["a", 1]] * 50,
            "triples": [["a", "b", "c"]] * 50,
        }
    ),
    "40,000 short lines": fill({"answer": "x"}),
}


if __name__ == "__main__":
    main()
