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
LISTED = 20  # maximum number of listed differences


def report_main(argv: Sequence[str], published: Path | None = None) -> int:
    """Compare runs: print a report and, with --json, write it to a file.

    Args:
        argv: The command's arguments.
        published: Folder of the papers' numbers; None leaves them out.

    Returns:
        0, or 2 if the runs cannot be read.
    """
    parser = argparse.ArgumentParser("lm-eval-rag report", description="Compare runs of lm_eval, with intervals.")
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the whole report to FILE, as JSON")
    by_help = f"key of the slices: {', '.join(SLICES)}, or a column of your questions (default: slice)"
    parser.add_argument("--by", metavar="KEY", default="slice", help=by_help)
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument("--against", metavar="RUN", help="compare with this run only (default: all pairs)")
    parser.add_argument("--metrics", help="metrics of the slices and differences, such as em,recall@10")
    parser.add_argument("--weights", help="add weighted means, such as popularity:head=0.6,torso=0.3,tail=0.1")
    errors_help = "classify every wrong answer: rule failure, retrieval error or attribution error"
    parser.add_argument("--errors", action="store_true", help=errors_help)
    options = parser.parse_args(argv)
    metrics = tuple(filter(None, (options.metrics or "").split(",")))

    def work() -> int:
        rows = read_published(published) if published is not None else ()
        weights = read_weights(options.weights) if options.weights else None
        runs = read_runs(options.run)
        reports = build(runs, options.by, rows, options.seed, options.against, metrics, weights)
        if options.json is not None:
            _write_json(options.json, {"level": LEVEL, "draws": DRAWS, "seed": options.seed, "tasks": reports})
        sys.stdout.write(render(reports))
        if options.errors:
            from lm_eval_rag.harness.report.mistakes import errors_text

            sys.stdout.write("\n" + errors_text(runs))
        return 0

    return _reporting_errors(work)


def rescore_main(argv: Sequence[str]) -> int:
    """Recompute every score of runs from their samples.

    Returns:
        0 if all scores agree, 1 if any differs, 2 if the runs cannot be read.
    """
    parser = argparse.ArgumentParser("lm-eval-rag rescore", description="Recompute every score from the samples alone.")
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN_HELP)
    options = parser.parse_args(argv)

    def work() -> int:
        runs = read_runs(options.run)
        ours = [run for run in runs if is_ours(run)]
        if not ours:
            names = ", ".join(sorted({run.task for run in runs}))
            raise UserError(f"These runs (tasks: {names}) contain none of our scores, so nothing can be recomputed.")
        results = [rescore(run) for run in ours]
        for run in {run.path: run for run in ours}.values():
            results += rescore_groups(run.label, run.results)
        skipped = sorted({f"{run.task} ({run.label})" for run in runs if not is_ours(run)})
        sys.stdout.write("\n\n".join(map(_rescored_text, results)) + "\n")
        if skipped:
            sys.stdout.write(printable(f"Not recomputed (scores are not ours): {', '.join(skipped)}.") + "\n")
        return 0 if all(result.agrees for result in results) else 1

    return _reporting_errors(work)


def _rescored_text(result: Rescored) -> str:
    errors = {check.name.replace("_stderr,", ","): check for check in result.checks if "_stderr," in check.name}
    rows = []
    for check in result.checks:
        if "_stderr," not in check.name:
            both = [check, errors.get(check.name, Check("", None, None))]
            digits = [_digits(value) for item in both for value in (item.reported, item.recomputed)]
            rows.append([check.name, *digits, "same" if all(item.same for item in both) else "DIFFERS"])
    faults = [*result.files, *result.lines[:LISTED]]
    if len(result.lines) > LISTED:
        faults.append(f"... and {len(result.lines) - LISTED} more")
    verdict = "all scores agree" if result.agrees else "scores DIFFER from the samples"
    return "\n".join(
        [
            printable(f"{result.task}, {result.run}: {verdict}"),
            table(["", "mean reported", "recomputed", "stderr reported", "recomputed", ""], rows, left=(0, 5)),
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
            f"{path} cannot be written: {error.strerror}. Give --json a file in an existing folder."
        ) from None


def _reporting_errors(work: Callable[[], int]) -> int:
    try:
        return work()
    except UserError as error:
        sys.stderr.write(f"lm-eval-rag: {printable(str(error))}\n")
        return error.status
