"""Mutation testing: changes the code in small ways, one at a time, and counts how many changes the tests notice.

    python scripts/mutate.py                          # all mutants of the files named under [tool.mutmut]
    python scripts/mutate.py --sample 500             # a random sample, for a busy machine
    python scripts/mutate.py 'lm_eval_rag.harness.scoring.answer.*'
    python scripts/mutate.py --report                 # the results of the runs so far

mutmut makes the mutants and runs, for each, the tests that reach the changed function. A run that was stopped goes on
where it was: remove the folder mutants/ after a change of code or tests. Mutants that no test can notice
are listed with the reason in tests/mutants.md; they count neither as caught nor as missed. What mutmut does not change:
decorated functions (properties), and statements outside of functions. The status is 1 where fewer than 95 % are caught.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "mutants"  # where mutmut puts the changed code
PREFIX = "src/lm_eval_rag/harness/"
LISTED = ROOT / "tests" / "mutants.md"
MIRROR = ROOT.parent / "shared" / "sources"
WANTED = 0.95


def copy_package() -> None:
    """Put the package, without links, where mutmut's processes import it; mutmut itself writes the mutated files."""
    for folder, _, names in os.walk(ROOT / "src", followlinks=True):
        target = WORK / Path(folder).relative_to(ROOT)
        mutated = target.is_relative_to(WORK / PREFIX)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not name.endswith(".pyc") and not (mutated and name.endswith(".py") and (target / name).exists()):
                shutil.copy2(Path(folder) / name, target / name)


def names_of_mutants() -> list[str]:
    """Every mutant of the files that pyproject.toml names, in order."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.file_utils import walk_mutatable_files
    from mutmut.utils.format_utils import get_mutant_name

    return [
        get_mutant_name(path, name)
        for path in sorted(walk_mutatable_files())
        for name in mutate_file_contents(str(path), path.read_text(encoding="utf-8")).mutant_names
    ]


def run(names: Sequence[str], processes: int) -> int:
    """mutmut's own status."""
    environment = {**os.environ, "PYTHONPATH": str(WORK / "src")}
    if MIRROR.is_dir():
        environment.setdefault("LM_EVAL_RAG_MIRROR", str(MIRROR))
    command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", str(processes), *names]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def results() -> Iterator[tuple[str, str, str]]:
    """(file, mutant, status) of every mutant that was run."""
    from mutmut.stats import status_by_exit_code

    for file in sorted((WORK / PREFIX).rglob("*.meta")):
        codes = json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        for name, code in codes.items():
            if code is not None:
                yield str(file.relative_to(WORK / PREFIX)).removesuffix(".meta"), name, status_by_exit_code[code]


def change_of(name: str) -> str:
    """The lines that a mutant removes and adds, without the space before them."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    return lines_of(get_diff_for_mutant(name))


def lines_of(diff: str) -> str:
    """The changed lines of a diff, each as its sign and its text."""
    changed = [line for line in diff.splitlines() if line[:1] in ("-", "+") and line[:3] not in ("---", "+++")]
    return "\n".join(f"{line[0]}{line[1:].strip()}" for line in changed)


def listed() -> set[str]:
    """The changes that tests/mutants.md lists: blocks of a diff, parted by an empty line."""
    text = LISTED.read_text(encoding="utf-8") if LISTED.is_file() else ""
    blocks = re.findall(r"^```diff\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return {lines_of(change) for block in blocks for change in block.split("\n\n")}


def report(show: bool) -> float:
    """Print what was caught, file by file, and return the share of all."""
    from lm_eval_rag.harness.scoring.judge.agreement import wilson

    counts: dict[str, Counter[str]] = defaultdict(Counter)
    equivalent = listed()
    for file, name, status in results():
        caught = status in ("killed", "timeout", "segfault", "suspicious")
        same = not caught and change_of(name) in equivalent
        counts[file]["caught" if caught else "equivalent" if same else "missed"] += 1
        if show and not caught and not same:
            print(f"\n{name}: {status}\n{change_of(name)}")
    print(f"\n{'file':<32}{'mutants':>9}{'caught':>9}{'missed':>9}{'equivalent':>12}")
    counts["all"] = sum(counts.values(), Counter())
    for file, count in counts.items():
        print(f"{file:<32}{count.total():>9}{count['caught']:>9}{count['missed']:>9}{count['equivalent']:>12}")
    caught, changed = counts["all"]["caught"], counts["all"]["caught"] + counts["all"]["missed"]
    low, high = wilson(caught, changed)
    share = caught / changed if changed else 0.0
    print(f"\ncaught {100 * share:.1f} % of {changed} mutants that change behaviour; as a sample: 95 % interval")
    print(f"[{100 * low:.1f}, {100 * high:.1f}]. Not run: {len(names_of_mutants()) - counts['all'].total()}.")
    return share


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="mutants, with * for any text; all by default")
    parser.add_argument("--sample", type=int, help="how many, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--report", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    if not arguments.report:
        copy_package()
        names = [name for name in names_of_mutants() if any(fnmatch(name, part) for part in arguments.names or ["*"])]
        if arguments.sample:
            names = random.Random(arguments.seed).sample(names, min(arguments.sample, len(names)))
        done = {name for _, name, _ in results()}
        names = sorted(name for name in names if name not in done)
        if names and (status := run(names, arguments.processes)):
            return status
    return int(report(show=True) < WANTED)


if __name__ == "__main__":
    sys.exit(main())
