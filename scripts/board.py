"""Makes the entries of our own board from real runs, and builds the board.

    python scripts/board.py --runs board_runs             # entries that are not there yet
    python scripts/board.py --runs board_runs --anew      # all, after the data or the scorer have changed
    python scripts/board.py --runs board_runs --methods rule_vote,last_object --tasks ruleqa_i,ruleqa_f

The last form makes one entry for each method, on all of the tasks; a method may have model arguments after a colon,
separated by semicolons (``standard_rag:k=5;retriever=bm25``). Each task is one run. A run whose results are in --runs
is not run again, and an interrupted one goes on from its journal.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BOARD = ROOT / "leaderboards"
ENTRIES, HISTORY = BOARD / "entries", BOARD / "history"
TEAM = "lm-eval-rag"
EMBEDDED = 3_700_000  # parameters of the embedded generators of RuleQA
TRAINING = (
    "Exercises of scripts/tiny and scripts/tiny_steps with invented names; "
    "tiny_rgft and tiny_ssft also training parts of RuleQA sets and of ruleqa_demo."
)
OF_TINY_CRAG = "Exercises of scripts/tiny, and pages and questions of invented worlds by scripts/tiny_crag."
SAME_FORMS = "Facts: none. Training had questions and pages of the same forms, about other worlds of the same kind."
DISJOINT = "None: exercises and demo have invented worlds, and training parts of RuleQA none of its pairs."
ON_DEMO = (
    "Questions: none. Training questions are about the same invented world; they link 10 of 200 asked pairs otherwise."
)
SETS = ("ruleqa_i", "ruleqa_y", "ruleqa_w", "ruleqa_f", "ruleqa_n")
DEMO = ("ruleqa_demo",)
FT = "generator=tiny_rgft,retriever=static,retriever_adapter=rgft"
SSFT = "generator=tiny_ssft,retriever_adapter=ssft,n_rules=0"
STEPS = "generator=tiny_steps"
OF_STEPS = ("standard_prompting", "standard_rag", "think_then_act", "iter_retgen", "ircot")
OF_CRAG = ("crag_llm_baseline", "crag_rag_baseline")
TUNED: dict[str, Any] = {"contamination": ON_DEMO}  # of the generators that were tuned on the demo's training part
CRAG: dict[str, Any] = {"tasks": ("crag_demo",), "contamination": SAME_FORMS, "training": OF_TINY_CRAG}
LADDER = {  # rows of the table crag_table2, whose first is crag_rag_baseline
    "chunks": "+ chunk extraction",
    "prompt": "+ prompt refinement",
    "attributes": "+ attribute predictor",
    "tables": "+ table extractor",
    "calculator": "+ calculator",
    "reasoning": "+ reasoning",
    "premise": "+ false premise",
    "knowledge": "+ knowledge extractor",
    "graph": "+ knowledge graph, final system",
}
NO_MODEL = {"rule_vote", "mode_of_relation", "mode_of_subject", "last_object", "link_vote", "copy_vote"}


@dataclass(frozen=True, slots=True)
class Row:
    """One entry: a method on some tasks, as lm_eval runs it."""

    folder: str
    name: str
    model: str
    tasks: tuple[str, ...] = DEMO
    arguments: str = ""
    parameters: int | None = EMBEDDED
    contamination: str | None = DISJOINT
    training: str = TRAINING
    of_table: str = ""  # the row of crag_table2 that it is, whose rows share their calls


OF_RULEQA = (
    Row("standard-rag-tiny", "Standard RAG, embedded", "standard_rag"),
    Row("standard-prompting-tiny", "Standard prompting, embedded", "standard_prompting"),
    # as many tokens a question as rulerag_ft reads, with its generator and retriever
    Row(
        "standard-rag-tiny-rgft-k12",
        "Standard RAG, tiny_rgft, 12 passages",
        "standard_rag",
        arguments=f"{FT},k=12",
        **TUNED,
    ),
    Row("rulerag-icl-tiny", "RuleRAG-ICL, embedded", "rulerag_icl"),
    Row("rulerag-ft-tiny", "RuleRAG-FT, embedded", "rulerag_ft", **TUNED),
    Row(
        "rulerag-ft-extractive-tiny",
        "RuleRAG-FT, answers copied from documents, embedded",
        "rulerag_ft_extractive",
        **TUNED,
    ),
    Row("rulerag-ssft-tiny", "RuleRAG-FT without rules (SSFT), embedded", "rulerag_ft", arguments=SSFT, **TUNED),
    Row("rule-vote", "Rule vote, BM25", "rule_vote", parameters=None),
    # as many documents as copy_vote reads: two of each of up to five rules
    Row("rule-vote-k2", "Rule vote, BM25, at most ten documents", "rule_vote", arguments="k=2", parameters=None),
    Row("mode-of-relation", "Mode of the relation", "mode_of_relation", parameters=None),
    Row("mode-of-subject", "Mode of the subject", "mode_of_subject", parameters=None),
    Row("last-object", "Last object", "last_object", parameters=None),
    Row("link-vote", "Link vote", "link_vote", parameters=None),
    Row("copy-vote", "Copy vote, BM25", "copy_vote", parameters=None),
)
OF_LADDER = tuple(
    Row(f"crag-hybrid-{name}", f"crag_hybrid {said}, tiny_crag", "crag_hybrid", **CRAG, of_table=f"tiny-{name}")
    for name, said in LADDER.items()
)
ROWS = (
    *OF_RULEQA,  # on ruleqa_demo, which needs no download
    *(
        replace(one, folder=f"{one.folder}-ruleqa", name=f"{one.name}, five sets", tasks=SETS, contamination=DISJOINT)
        for one in OF_RULEQA
    ),
    *(Row(f"{one}_steps".replace("_", "-"), f"{one}, tiny_steps", one, ("reasoning_demo",), STEPS) for one in OF_STEPS),
    *(Row(one.replace("_", "-"), f"{one}, tiny_crag", one, arguments="generator=tiny_crag", **CRAG) for one in OF_CRAG),
    *OF_LADDER,
)


def main() -> None:
    """Make the entries that are missing, then the site."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--out", type=Path, default=Path("site"), help="folder of the site (default: site)")
    parser.add_argument("--anew", action="store_true", help="make every entry anew")
    parser.add_argument("--methods", help="methods of further entries, METHOD or METHOD:NAME=VALUE;..., with commas")
    parser.add_argument("--tasks", help="the tasks of --methods, with commas")
    parser.add_argument("--generator-parameters", type=int, help="size of the generator of --methods")
    options = parser.parse_args()
    if bool(options.methods) != bool(options.tasks):
        parser.error("--methods and --tasks belong together")
    rows = ROWS if not options.methods else asked(options.methods, options.tasks, options.generator_parameters)
    for row in rows:
        if options.anew:
            shutil.rmtree(ENTRIES / row.folder, ignore_errors=True)
        if not (ENTRIES / row.folder).is_dir():
            make(row, of_ladder(row, options.runs) if row.of_table else of_tasks(row, options.runs / row.folder))
    run("lm-eval-rag", "board", "build", str(ENTRIES), "--out", str(options.out), "--history", str(HISTORY))


def asked(methods: str, tasks: str, parameters: int | None) -> tuple[Row, ...]:
    """One row for each method. Names say the arguments and the tasks, so that entries do not take each other's name."""
    rows = []
    for one in methods.split(","):
        model, _, arguments = one.partition(":")
        name = " ".join(filter(None, [model, arguments.replace(";", " "), f"on {tasks.replace(',', ' ')}"]))
        folder = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:120]
        size = None if model in NO_MODEL else parameters or EMBEDDED
        shown = f"{model} {arguments}".strip()[:80]
        rows.append(Row(folder, shown, model, tuple(tasks.split(",")), arguments.replace(";", ","), size, None))
    return tuple(rows)


def of_tasks(row: Row, folder: Path) -> list[Path]:
    """Run one method, a task at a time; returns the folders of the runs."""
    for task in row.tasks:
        place = folder / task
        if not list(place.rglob("results_*.json")):
            arguments = ["--model_args", row.arguments] if row.arguments else []
            run(
                *("lm_eval", "--tasks", task, "--model", row.model, *arguments),
                *("--output_path", str(place), "--log_samples"),
            )
    return [folder / task for task in row.tasks]


def of_ladder(row: Row, folder: Path) -> list[Path]:
    """Run all rows of the ladder, which reuse each other's calls; returns the folder of one."""
    out = folder / "crag_table2"
    own = out / "runs" / row.of_table
    if not list(own.rglob("results_*.json")):
        run("lm-eval-rag", "reproduce", "crag_table2", "--only", "tiny-*", "--out", str(out))
    return [own]


def make(row: Row, runs: list[Path]) -> None:
    """Pack what one method predicted."""
    size = ["--parameters", str(row.parameters)] if row.parameters is not None else []
    trained = ["--training-data", row.training] if row.parameters == EMBEDDED else []
    known = ["--contamination", row.contamination] if row.contamination else []
    run(
        *("lm-eval-rag", "submit", *map(str, runs), "--name", row.name, "--team", TEAM),
        *size, *trained, *known, "--out", str(ENTRIES / row.folder),
    )  # fmt: skip


def run(*command: str) -> None:
    """Print a command, run it with this Python's scripts, and stop if it fails."""
    print(f"$ {' '.join(command)}", flush=True)
    done = subprocess.run([str(Path(sys.executable).parent / command[0]), *command[1:]], check=False)
    if done.returncode:
        sys.exit(f"{command[0]} ended with exit code {done.returncode}")


if __name__ == "__main__":
    main()
