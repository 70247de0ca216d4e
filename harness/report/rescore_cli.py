"""``lm-eval-rag rescore``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.groups import rescore_groups
from lm_eval_rag.harness.report.report_cli import RUN_HELP, reporting_errors
from lm_eval_rag.harness.report.rescore import Check, Rescored, is_ours, rescore
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.report.table import printable, table

LISTED = 20  # maximum number of listed differences


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

    return reporting_errors(work)


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
