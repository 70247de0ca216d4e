"""Runs every row of RESULTS.md's first tables with lm_eval, then prints the tables in Markdown.

    python scripts/results.py --output runs

A finished row is not run again. ``generator=dummy`` is lm_eval's dummy model, for rows about retrieval only. Seconds
and peak memory are those of the whole lm_eval command with all its tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from lm_eval_rag.harness.report.content import build
from lm_eval_rag.harness.report.report_parts import RunReport, TaskReport
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.report.stats import Interval

SETS = tuple(f"ruleqa_{letter}" for letter in "iywfn")
HARD = ("ruleqa_i_hard", "ruleqa_f_hard", "ruleqa_n_hard")
SLICES = ("direct", "reverse", "rule_required", "other_link", "nowhere", "stable", "changed")
METRICS = ("em", "recall@10", "token_f1", "crag_score", "pooled_recall_contains")
CONTROLS = ("random", "shuffled", "oracle")


@dataclass(frozen=True, slots=True)
class Row:
    """One run: its name in the tables, the model with its arguments, and the tasks."""

    name: str
    model: str
    arguments: str
    tasks: tuple[str, ...] = (*SETS, *HARD)

    @property
    def folder(self) -> str:
        """Folder of its results."""
        return "-".join([self.model, *self.arguments.replace(",", "-").split("=")]).replace("/", "_").strip("-")


def _guided(join: str, name: str) -> list[Row]:
    suffix = "" if join == "rule" else f",join={join}"
    rows = [Row(name, "rulerag_icl", f"generator=dummy{suffix}")]
    return rows + [Row(f"- {c} rules", "rulerag_icl", f"generator=dummy{suffix},rules={c}") for c in CONTROLS]


RETRIEVAL = [
    Row("question alone", "standard_rag", "generator=dummy"),
    Row("3 variants of the question", "standard_rag", "generator=dummy,n_queries=3"),
    *_guided("rule", "question + rule (RuleRAG)"),
    *_guided("replace", "question with the rule's body"),
]
VOTE = [Row("rule_vote", "rule_vote", ""), *(Row(f"- {c} rules", "rule_vote", f"rules={c}") for c in CONTROLS)]
FT = "retriever=static,retriever_adapter=rgft,generator=tiny_rgft"
GENERATION = [
    Row("standard_prompting", "standard_prompting", "", SETS[:1]),
    Row("standard_rag", "standard_rag", "", SETS[:1]),
    Row("rulerag_icl", "rulerag_icl", "", SETS[:1]),
    Row("- random rules", "rulerag_icl", "rules=random", SETS[:1]),
    Row("rulerag_icl join=replace", "rulerag_icl", "join=replace", SETS[:1]),
    Row("standard_rag, retriever and generator of rulerag_ft", "standard_rag", FT, SETS[:1]),
    Row("rulerag_ft", "rulerag_ft", "", SETS),
    Row("- random rules", "rulerag_ft", "rules=random", SETS[:1]),
    Row("- shuffled rules", "rulerag_ft", "rules=shuffled", SETS[:1]),
    Row("rule_vote", "rule_vote", "", (*SETS, *HARD)),
]
UNPOOLED = ("n_queries", "shuffled", "oracle")
POOLED = [row for row in RETRIEVAL if not any(word in row.arguments for word in UNPOOLED)]


def run_row(row: Row, output: Path) -> None:
    """Run one row, unless its cost file exists, which is written last."""
    folder = output / row.folder
    if (folder / "cost.json").is_file():
        return
    command = ["lm_eval", "run", "--tasks", ",".join(row.tasks), "--model", row.model, "--log_samples"]
    command += ["--output_path", str(folder), "--model_args", ",".join(filter(None, [row.arguments, "journal=off"]))]
    print("$", " ".join(command), file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / command[0]), *command[1:]], stdout=log, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"results: the command failed; see {folder / 'log.txt'}")
    cost = {"seconds": round(time.perf_counter() - began, 1), "peak_mb": round(usage.ru_maxrss / 1024)}
    (folder / "cost.json").write_text(json.dumps(cost))


def read(rows: Iterable[Row], output: Path) -> dict[tuple[str, str], RunReport]:
    """(folder of a row, task) -> its report, with slices of every score in the tables."""
    by_folder: dict[tuple[str, str], RunReport] = {}
    for row in rows:
        reports: list[TaskReport] = build(read_runs([output / row.folder]), metrics=METRICS)
        by_folder |= {(row.folder, report.task): report.runs[0] for report in reports}
    return by_folder


def cell(interval: Interval | None) -> str:
    """A percentage with its 95 % interval."""
    if interval is None:
        return ""
    mean = f"{100 * interval.mean:.1f}"
    if interval.low is None or interval.high is None:
        return mean
    return f"{mean} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(head)
    rows = [names, ["---", *["---:"] * (len(names) - 1)], *map(list, lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def main() -> None:
    """Run the missing rows, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("runs"))
    parser.add_argument("--only", choices=("retrieval", "generation"), help="run these rows, print no tables")
    parser.add_argument("--sets", default="iywfn", help="letters of the sets to run (default: iywfn)")
    options = parser.parse_args()
    rows = list({row.folder: row for row in (*RETRIEVAL, *VOTE, *GENERATION)}.values())
    selected = {None: rows, "retrieval": [*RETRIEVAL, *VOTE], "generation": GENERATION}[options.only]
    for row in selected:
        if tasks := tuple(task for task in row.tasks if task.removeprefix("ruleqa_")[0] in options.sets):
            run_row(replace(row, tasks=tasks), options.output)
    if options.only:
        return
    reports = read(rows, options.output)
    costs = {row.folder: json.loads((options.output / row.folder / "cost.json").read_text()) for row in rows}

    def line(row: Row, tasks: Iterable[str], of: Callable[[RunReport], Interval | None]) -> list[str]:
        return [row.name, *(cell(of(reports[row.folder, task])) for task in tasks)]

    print("recall@10 over all questions\n")
    lines = [line(row, SETS, lambda report: report.scores.get("recall@10")) for row in RETRIEVAL]
    print(table(["", *SETS], lines))
    print("pooled_recall_contains, in mean documents\n")
    lines = []
    for row in POOLED:
        pooled = line(row, SETS, lambda report: report.scores.get("pooled_recall_contains"))
        counts = [reports[row.folder, task].scores["pooled_documents"].mean for task in SETS]
        lines.append([row.name, *(f"{text} in {n:.0f}" for text, n in zip(pooled[1:], counts, strict=True))])
    print(table(["", *SETS], lines))
    print("recall@10 over every rule_required question\n")
    lines = [line(row, HARD, lambda report: report.scores.get("recall@10")) for row in RETRIEVAL]
    print(table(["", *HARD], lines))
    print("em of rule_vote\n")
    print(table(["", *SETS], [line(row, SETS, lambda report: report.scores.get("em")) for row in VOTE]))
    head = ["", "em", *(f"em, {name}" for name in SLICES), "token_f1", "crag_score"]
    vote = [[task, *_scores(reports[VOTE[0].folder, task])] for task in (*SETS, *HARD)]
    print(table(head, vote))
    tuned = [[task, *_scores(reports["rulerag_ft", task])] for task in SETS]
    print("rulerag_ft\n")
    print(table(head, tuned))
    print("RuleQA-I with the embedded generators\n")
    generation = [
        [row.name, *_scores(reports[row.folder, SETS[0]]), _cost(costs[row.folder]) if len(row.tasks) == 1 else ""]
        for row in GENERATION
    ]
    print(table([*head, "time, peak memory"], generation))
    print("seconds and peak memory per command\n")
    print(
        table(
            ["", "tasks", "cost"],
            [[f"`{r.model} {r.arguments}`", str(len(r.tasks)), _cost(costs[r.folder])] for r in rows],
        )
    )


def _scores(report: RunReport) -> list[str]:
    slices = [cell(report.slices.get(name, {}).get("em")) for name in SLICES]
    return [cell(report.scores["em"]), *slices, cell(report.scores["token_f1"]), cell(report.scores["crag_score"])]


def _cost(cost: dict[str, float]) -> str:
    return f"{cost['seconds']:.0f} s, {cost['peak_mb']:.0f} MB"


if __name__ == "__main__":
    main()
