"""Mutation testing: changes the code in small ways, one at a time, and counts how many changes the tests notice.

    python scripts/mutate.py                          # all mutants of the files named under [tool.mutmut]
    python scripts/mutate.py --sample 500             # a random sample, for a busy machine
    python scripts/mutate.py 'lm_eval_rag.harness.scoring.answer.*'
    python scripts/mutate.py --report                 # the results of the runs so far

mutmut makes the mutants; mutate_run.py runs, for each, the tests that reach the changed function. Results are kept in
mutants/: a run that was stopped goes on where it was, and a second run tries only what no test noticed, and files that
have changed. Mutants that no test can notice are listed with the reason in tests/mutants.md; they count neither as
caught nor as missed. What mutmut does not change: decorated functions (properties), and statements outside of
functions. The status is 1 where fewer than 95 % are caught.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "mutants"  # the package with the changed code, and the results
OUTCOMES = WORK / "outcomes.tsv"
LISTED = ROOT / "tests" / "mutants.md"
MIRROR = ROOT.parent / "shared" / "sources"
WANTED = 0.95
MISSED = "missed"


def make_mutants() -> dict[str, str]:
    """Every mutant's name -> the file with all mutants of its module. What a changed file has as results is dropped."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.file_utils import walk_mutatable_files
    from mutmut.utils.format_utils import get_mutant_name

    changed, files = set[str](), {}
    for path in sorted(walk_mutatable_files()):
        target, mutated = WORK / path, mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
        names = [get_mutant_name(path, name) for name in mutated.mutant_names]
        if not target.is_file() or target.read_text(encoding="utf-8") != mutated.code:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(mutated.code, encoding="utf-8")
            changed |= set(names)
        files |= dict.fromkeys(names, str(path))
    keep = {name: outcome for name, outcome in outcomes().items() if name in files and name not in changed}
    OUTCOMES.write_text("".join(f"{outcome}\t{name}\n" for name, outcome in keep.items()), encoding="utf-8")
    return files


def copy_package(mutated: Iterable[str]) -> None:
    """Put the rest of the package, without links, beside the changed files."""
    kept = {WORK / path for path in mutated}
    for folder, _, names in os.walk(ROOT / "src", followlinks=True):
        target = WORK / Path(folder).relative_to(ROOT)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            if target / name not in kept and not name.endswith(".pyc"):
                shutil.copy2(Path(folder) / name, target / name)


def run(names: Iterable[str], processes: int) -> int:
    """The status of pytest."""
    from mutmut.configuration import config

    file = WORK / "names.txt"
    file.write_text("\n".join(names), encoding="utf-8")
    paths = os.pathsep.join(map(str, (WORK / "src", Path(__file__).parent)))
    environment = {**os.environ, "PYTHONPATH": paths, "MUTANT_UNDER_TEST": ""}
    if MIRROR.is_dir():
        environment.setdefault("LM_EVAL_RAG_MIRROR", str(MIRROR))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "mutate_run",
        "-p",
        "no:timeout",
        f"--mutants={file}",
        f"--outcomes={OUTCOMES}",
    ]
    command += [f"--processes={processes}", *config().pytest_add_cli_args, *config().pytest_add_cli_args_test_selection]
    return subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL).returncode


def outcomes() -> dict[str, str]:
    """Mutant -> its last outcome, of every mutant that was run."""
    lines = OUTCOMES.read_text(encoding="utf-8").splitlines() if OUTCOMES.is_file() else []
    return {name: outcome for outcome, name in (line.split("\t") for line in lines)}


def change_of(name: str, file: str) -> str:
    """The lines that a mutant removes and adds, without the space before them."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    return lines_of(get_diff_for_mutant(name, (WORK / file).read_text(encoding="utf-8"), file))


def lines_of(diff: str) -> str:
    """The changed lines of a diff, each as its sign and its text."""
    changed = [line for line in diff.splitlines() if line[:1] in ("-", "+") and line[:3] not in ("---", "+++")]
    return "\n".join(f"{line[0]}{line[1:].strip()}" for line in changed)


def listed() -> set[str]:
    """The changes that tests/mutants.md lists: blocks of a diff, parted by an empty line."""
    text = LISTED.read_text(encoding="utf-8") if LISTED.is_file() else ""
    blocks = re.findall(r"^```diff\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return {lines_of(change) for block in blocks for change in block.split("\n\n")}


def report(files: dict[str, str]) -> float:
    """Print what was missed, and what was caught, file by file; return the share of all."""
    from lm_eval_rag.harness.scoring.judge.agreement import wilson

    counts: dict[str, Counter[str]] = defaultdict(Counter)
    equivalent = listed()
    for name, outcome in sorted(outcomes().items()):
        change = change_of(name, files[name]) if outcome == MISSED else ""
        same = change in equivalent
        counts[files[name].partition("harness/")[2]]["same" if same else MISSED if change else "caught"] += 1
        if change and not same:
            print(f"\n{name}\n{change}")
    print(f"\n{'file':<32}{'mutants':>9}{'caught':>9}{'missed':>9}{'equivalent':>12}")
    counts["all"] = sum(counts.values(), Counter())
    for file, count in counts.items():
        print(f"{file:<32}{count.total():>9}{count['caught']:>9}{count[MISSED]:>9}{count['same']:>12}")
    caught, changed = counts["all"]["caught"], counts["all"]["caught"] + counts["all"][MISSED]
    low, high = wilson(caught, changed)
    share = caught / changed if changed else 0.0
    print(f"\ncaught {100 * share:.1f} % of {changed} mutants that change behaviour; as a sample: 95 % interval")
    print(f"[{100 * low:.1f}, {100 * high:.1f}]. Not run: {len(files) - counts['all'].total()}.")
    return share


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="mutants, with * for any text; all by default")
    parser.add_argument("--sample", type=int, help="how many, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    os.chdir(ROOT)
    WORK.mkdir(exist_ok=True)
    files = make_mutants()
    if not options.report:
        copy_package(files.values())
        names = [name for name in files if any(fnmatch(name, part) for part in options.names or ["*"])]
        if options.sample:
            names = random.Random(options.seed).sample(names, min(options.sample, len(names)))
        known = outcomes()
        names = [name for name in names if known.get(name, MISSED) == MISSED]
        if names and (status := run(names, options.processes)):
            return status
    return int(report(files) < WANTED)


if __name__ == "__main__":
    sys.exit(main())
