"""``lm-eval-rag report`` and ``lm-eval-rag rescore``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.abstention_scores import read_weights
from lm_eval_rag.harness.report.content import SLICES, build
from lm_eval_rag.harness.report.groups import rescore_groups
from lm_eval_rag.harness.report.published import read_published
from lm_eval_rag.harness.report.report_text import render
from lm_eval_rag.harness.report.rescore import Check, Rescored, is_ours, rescore
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.report.stats import DRAWS, LEVEL
from lm_eval_rag.harness.report.table import printable, table

RUN_HELP = "a folder that lm_eval wrote with --output_path FOLDER --log_samples, or a results file in it"
NAMED = 20  # differing lines that are named


def report_main(argv: Sequence[str], published: Path | None = None) -> int:
    """Compare runs: prints a report, and writes it as JSON where asked.

    Args:
        argv: The command's arguments.
        published: Folder of the papers' numbers, to stand beside ours; None leaves them out.

    Returns:
        0, or 2 when the runs cannot be read.
    """
    parser = argparse.ArgumentParser("lm-eval-rag report", description="Compare runs of lm_eval, with intervals.")
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything, as JSON, into FILE too")
    parser.add_argument("--by", choices=SLICES, default="slice", help="what to slice by (default: slice)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")
    parser.add_argument("--against", metavar="RUN", help="compare with this run only (default: all pairs)")
    parser.add_argument("--metrics", help="what slices and differences are about, such as em,recall@10")
    parser.add_argument("--weights", help="means under weights too, such as popularity:head=0.6,torso=0.3,tail=0.1")
    told = "class every wrong answer: rule failure, retrieval error or attribution error"
    parser.add_argument("--errors", action="store_true", help=told)
    given = parser.parse_args(argv)
    metrics = tuple(filter(None, (given.metrics or "").split(",")))

    def work() -> int:
        rows = read_published(published) if published is not None else ()
        weights = read_weights(given.weights) if given.weights else None
        runs = read_runs(given.run)
        reports = build(runs, given.by, rows, given.seed, given.against, metrics, weights)
        if given.json is not None:
            _write_json(given.json, {"level": LEVEL, "draws": DRAWS, "seed": given.seed, "tasks": reports})
        sys.stdout.write(render(reports))
        if given.errors:
            from lm_eval_rag.harness.report.mistakes import errors_text

            sys.stdout.write("\n" + errors_text(runs))
        return 0

    return _reporting_errors(work)


def rescore_main(argv: Sequence[str]) -> int:
    """Recompute every score of runs from their samples.

    Returns:
        0 when all agree, 1 when something differs, 2 when the runs cannot be read.
    """
    parser = argparse.ArgumentParser("lm-eval-rag rescore", description="Recompute every score from the samples alone.")
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN_HELP)
    given = parser.parse_args(argv)

    def work() -> int:
        runs = read_runs(given.run)
        ours = [run for run in runs if is_ours(run)]
        if not ours:
            names = ", ".join(sorted({run.task for run in runs}))
            raise UserError(f"No scores of ours are in these runs (tasks: {names}): nothing can be recomputed.")
        found = [rescore(run) for run in ours]
        for run in {run.path: run for run in ours}.values():
            found += rescore_groups(run.label, run.results)
        skipped = sorted({f"{run.task} ({run.label})" for run in runs if not is_ours(run)})
        sys.stdout.write("\n\n".join(map(_rescored_text, found)) + "\n")
        if skipped:
            sys.stdout.write(printable(f"Left alone, as their scores are not ours: {', '.join(skipped)}.") + "\n")
        return 0 if all(one.agrees for one in found) else 1

    return _reporting_errors(work)


def _rescored_text(found: Rescored) -> str:
    errors = {check.name.replace("_stderr,", ","): check for check in found.checks if "_stderr," in check.name}
    rows = []
    for check in found.checks:
        if "_stderr," not in check.name:
            both = [check, errors.get(check.name, Check("", None, None))]
            digits = [_digits(value) for one in both for value in (one.given, one.recomputed)]
            rows.append([check.name, *digits, "same" if all(one.same for one in both) else "DIFFERS"])
    faults = [*found.files, *found.lines[:NAMED]]
    if len(found.lines) > NAMED:
        faults.append(f"... and {len(found.lines) - NAMED} more")
    verdict = "all scores agree" if found.agrees else "NOT what the samples say"
    return "\n".join(
        [
            printable(f"{found.task}, {found.run}: {verdict}"),
            table(["", "mean given", "recomputed", "stderr given", "recomputed", ""], rows, left=(0, 5)),
            *map(printable, faults),
        ]
    )


def _digits(value: float | None) -> str:
    return "-" if value is None else repr(value)


def _write_json(path: Path, content: object) -> None:
    try:
        text = json.dumps(content, indent=2, ensure_ascii=False, default=dataclasses.asdict)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror}. Give --json a file in a folder that exists."
        ) from None


def _reporting_errors(work: Callable[[], int]) -> int:
    try:
        return work()
    except UserError as error:
        sys.stderr.write(f"lm-eval-rag: {printable(str(error))}\n")
        return 2
