"""``lm-eval-rag report``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.abstention_scores import read_weights
from lm_eval_rag.harness.report.content import SLICES, build
from lm_eval_rag.harness.report.document import document
from lm_eval_rag.harness.report.filtering import only_where
from lm_eval_rag.harness.report.formats import FORMATS, format_of, write
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.plot_files import write_plots
from lm_eval_rag.harness.report.published import read_published
from lm_eval_rag.harness.report.run_files import TaskRun, read_runs
from lm_eval_rag.harness.report.table import printable

UNCLUSTERED_HELP = (
    "intervals and tests as if questions were independent (default: by the clusters that a task declares)"
)
RUN_HELP = "a folder that lm_eval wrote with --output_path FOLDER --log_samples, or a results file in it"


def report_main(argv: Sequence[str], published: Path | None = None) -> int:
    """Compare runs: print a report, or write it to files.

    Args:
        argv: The command's arguments.
        published: Folder of the papers' numbers; None leaves them out.

    Returns:
        0, or 2 if the runs cannot be read.
    """
    options = _parser().parse_args(argv)
    metrics = tuple(filter(None, (options.metrics or "").split(",")))

    def work() -> int:
        formats = [options.format or format_of(path) for path in options.out]
        rows = read_published(published) if published is not None else ()
        weights = read_weights(options.weights) if options.weights else None
        runs = read_runs(options.run)
        runs = only_where(runs, options.where) if options.where else runs
        reports = build(
            runs,
            options.by,
            rows,
            options.seed,
            options.against,
            metrics,
            weights,
            clustered=not options.unclustered,
            apart=options.apart,
        )
        whole = document(reports, options.seed, _errors(runs) if options.errors else (), options.where)
        if options.json is not None:
            write(FORMATS["json"](whole), options.json, "--json")
        for path, name in zip(options.out, formats, strict=True):
            write(FORMATS[name](whole), path, "--out")
        figures = write_plots(whole, options.figures) if options.figures is not None else []
        if not options.out:
            sys.stdout.write(FORMATS[options.format or "text"](whole))
        files = sys.stdout if options.out else sys.stderr
        files.writelines(f"{path}\n" for path in (*options.out, *figures))
        return 0

    return reporting_errors(work)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("lm-eval-rag report", description="Compare runs of lm_eval, with intervals.")
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--format", choices=FORMATS, help="of what is printed, or of --out (default: by its suffix)")
    out = "write the report to FILE instead of printing it: .txt, .md, .html, .tex, .csv, .json; may be repeated"
    parser.add_argument("--out", type=Path, metavar="FILE", action="append", default=[], help=out)
    figures = "write the figures to DIR, as SVG, PDF and PNG (extra: plots)"
    parser.add_argument("--figures", type=Path, metavar="DIR", help=figures)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the whole report to FILE, as JSON")
    by_help = f"key of the slices: {', '.join(SLICES)}, or a column of your questions (default: slice)"
    parser.add_argument("--by", metavar="KEY", default="slice", help=by_help)
    where_help = "only the questions with this value of a column, such as slice=rule_required"
    parser.add_argument("--where", metavar="KEY=VALUE", default="", help=where_help)
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument("--against", metavar="RUN", help="compare with this run only (default: all pairs)")
    parser.add_argument("--metrics", help="only these metrics, in this order, such as em,recall@10 (default: all)")
    parser.add_argument("--weights", help="add weighted means, such as popularity:head=0.6,torso=0.3,tail=0.1")
    parser.add_argument("--unclustered", action="store_true", help=UNCLUSTERED_HELP)
    apart = "runs of different versions of a task in sections of their own, instead of refusing them"
    parser.add_argument("--apart", action="store_true", help=apart)
    errors_help = "classify every wrong answer: rule failure, retrieval error or attribution error"
    parser.add_argument("--errors", action="store_true", help=errors_help)
    return parser


def _errors(runs: Sequence[TaskRun]) -> Iterable[Grid]:
    from lm_eval_rag.harness.report.mistakes import errors_grid

    yield errors_grid(runs)


def reporting_errors(work: Callable[[], int]) -> int:
    """The status of a command; bad input is one line on standard error."""
    try:
        return work()
    except UserError as error:
        sys.stderr.write(f"lm-eval-rag: {printable(str(error))}\n")
        return error.status
