"""``lm-eval-rag reproduce TABLE``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.common.shares import share_of
from lm_eval_rag.harness.report.drawing import why_no_figures
from lm_eval_rag.harness.report.published import PublishedRow, read_published
from lm_eval_rag.harness.report.report_cli import UNCLUSTERED_HELP
from lm_eval_rag.harness.report.stats import DRAWS, LEVEL
from lm_eval_rag.harness.reproduce.check_table import check_table
from lm_eval_rag.harness.reproduce.figure_files import write_figures
from lm_eval_rag.harness.reproduce.page import Page, make_page
from lm_eval_rag.harness.reproduce.page_html import render_html
from lm_eval_rag.harness.reproduce.page_text import render_text
from lm_eval_rag.harness.reproduce.printed_commands import plan
from lm_eval_rag.harness.reproduce.row_results import Reader
from lm_eval_rag.harness.reproduce.running import Job, Runner, jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_shards import check_shared_calls, jobs_of_share, merge, write_note
from lm_eval_rag.harness.reproduce.table_spec import Row, Table
from lm_eval_rag.harness.reproduce.training import Trainer
from lm_eval_rag.harness.reproduce.trial import trial_of

log = logging.getLogger(__name__)
FAILED, UNSCORED = 1, 3  # exit statuses: a row failed, questions have no score


def reproduce_main(argv: Sequence[str], *, tables: Path, published: Path, build: Callable[[str], str]) -> int:
    """Run the rows of a table that have not been run, and write its page.

    The page is ``page.txt``, ``page.html`` and ``page.json`` in the output folder; its figures are in ``figures/`` as
    SVG, PDF and PNG.

    Args:
        argv: The command's arguments.
        tables: Folder of the tables' files.
        published: Folder of the papers' numbers.
        build: Builds a task's corpus and returns its id.

    Returns:
        0; 1 if a row failed; 3 if questions are unscored.

    Raises:
        UserError: Bad arguments, an unknown table or row, or an unknown name in the table.
    """
    options = _parser(tables).parse_args(argv)
    table, numbers = _table(options, tables), read_published(published)
    check_table(table, numbers)
    listed = options.dry_run or options.write_samples  # also rows that do not run here
    everything = listed and not (options.only or options.without_training)
    rows = table.rows if everything else chosen(table, options.only, trained=not options.without_training)
    every = [job for row in rows for job in jobs(row)]
    limit = None if options.limit is None else at_least("--limit", options.limit)
    out = options.out or Path("reproduced") / table.name
    runner = Runner(out, Trainer(build), limit, table.share_calls)
    share = _share(options, table)
    if options.merge is not None:
        failed = merge(options.merge or [out], table, every, runner)
        return _end(table, numbers, runner, failed, clustered=not options.unclustered)
    own = jobs_of_share(every, share) if share else every
    if options.dry_run:
        sys.stdout.write("\n".join(plan(table, own, runner, _words(options), options.only)) + "\n")
        return 0
    output_folder(out)
    if options.write_samples:
        sys.stdout.write("".join(f"{path}\n" for path in runner.write_samples(own)))
        return 0
    failed = {} if options.page_only else run_jobs(own, runner)
    if share:
        note = write_note(table, every, own, share, runner, failed)
        sys.stdout.write(f"{len(own)} of {len(every)} evaluations have ended: {note}\nThe page is made by --merge.\n")
        return FAILED if failed else 0
    return _end(table, numbers, runner, failed, clustered=not options.unclustered)


def _end(
    table: Table, numbers: Sequence[PublishedRow], runner: Runner, failed: Mapping[str, str], *, clustered: bool
) -> int:
    """Write the page, print it, and return the exit status."""
    output_folder(runner.out)
    by_hand = list(dict.fromkeys(row.line for row in table.rows for job in jobs(row) if runner.only_by_hand(job)))
    if by_hand:
        command = shlex.join(["lm-eval-rag", "reproduce", table.file or table.name, "--only", *by_hand])
        log.warning(
            "%s: run by single lines, which the page does not have. It has them after `%s`, which reuses their "
            "trainings and calls.",
            ", ".join(by_hand),
            command,
        )
    page = write_page(table, numbers, runner, failed, clustered=clustered)
    sys.stdout.write(f"{render_text(page)}\n{runner.out / 'page.html'}\n")
    return FAILED if failed else UNSCORED if page.unscored else 0


def _share(options: argparse.Namespace, table: Table) -> tuple[int, int] | None:
    if options.shard is None:
        return None
    if options.merge is not None:
        raise UserError("--shard runs rows and --merge joins those of all shards: give one of the two.")
    check_shared_calls(table)
    return share_of("--shard", options.shard)


def _table(options: argparse.Namespace, tables: Path) -> Table:
    table, steps = find_table(options.table, tables), options.max_steps
    return table if steps is None else trial_of(table, at_least("--max-steps", steps))


def find_table(name: str, tables: Path) -> Table:
    """A table of the package by its name, or one's own by the path of its file, which ends in ``.toml``.

    Raises:
        UserError: There is none, or its file is wrong.
    """
    if name.endswith(".toml"):
        return replace(read_table(Path(name)), file=name)
    path = tables / f"{name}.toml"
    if not path.is_file():
        raise unknown("table", name, names(tables), "A table of your own is a file: ./NAME.toml.")
    return read_table(path)


def names(tables: Path) -> list[str]:
    """Names of the tables in a folder."""
    return sorted(path.stem for path in tables.glob("*.toml"))


def chosen(table: Table, only: Sequence[str] | None, *, trained: bool = True) -> list[Row]:
    """The rows to run: those named (``static*`` names several), else all that need nothing beyond the install.

    Args:
        trained: Whether rows are among them that need a training step of the table.
    """
    for pattern in only or ():
        if not any(_fits(row, pattern) for row in table.rows):
            raise unknown("row", pattern, [row.line for row in table.rows])
    rows = [row for row in table.rows if trained or not any(job.steps for job in jobs(row))]
    if only:
        return [row for row in rows if any(_fits(row, pattern) for pattern in only)]
    return [row for row in rows if not row.needs]


def run_jobs(all_jobs: Sequence[Job], runner: Runner) -> dict[str, str]:
    """Run what has not been run; returns row -> error for rows with bad input, which do not stop the others."""
    failed: dict[str, str] = {}
    for number, job in enumerate(all_jobs, start=1):
        log.info("%d of %d: %s on %s", number, len(all_jobs), job.row.name, ", ".join(job.tasks))
        try:
            runner.run(job)
        except UserError as error:
            log.warning("%s failed: %s", job.row.name, error)
            failed[job.row.name] = str(error)
    return failed


def write_page(
    table: Table,
    numbers: Sequence[PublishedRow],
    runner: Runner,
    failed: Mapping[str, str] | None = None,
    *,
    clustered: bool = True,
) -> Page:
    """Write the page of everything that has been run so far into the runner's output folder; returns what it shows."""
    results = Reader(table, clustered).read(runner, table.rows)
    page = make_page(table, results, numbers, failed=failed, limit=runner.limit)
    runner.out.mkdir(parents=True, exist_ok=True)
    no_figures = why_no_figures()
    figures = [] if no_figures else write_figures(page.figures, runner.out / "figures")
    content = {"level": LEVEL, "draws": DRAWS, "page": page}
    files = {
        "page.json": json.dumps(content, indent=1, ensure_ascii=False, default=_jsonable) + "\n",
        "page.txt": render_text(page),
        "page.html": render_html(page, figures, no_figures),
    }
    for name, text in files.items():
        (runner.out / name).write_text(text, encoding="utf-8")
    return page


def _parser(tables: Path) -> argparse.ArgumentParser:
    description = "Run a table of your own, or a paper's and compare with its numbers."
    parser = argparse.ArgumentParser("lm-eval-rag reproduce", description=description)
    parser.add_argument("table", metavar="TABLE", help=f"FILE.toml, or one of {', '.join(names(tables))}")
    which = "only these rows, by name or pattern ('static*'), including those that need a GPU or a key"
    parser.add_argument("--only", nargs="+", metavar="ROW", help=which)
    training = "leave out rows that need a training step of the table; the page is then provisional"
    parser.add_argument("--without-training", action="store_true", help=training)
    limiting = "a trial with the first N questions of each task; training is whole without --max-steps"
    parser.add_argument("--limit", type=int, metavar="N", help=limiting)
    short = "a trial whose training steps end after N steps of the optimizer; its checkpoints and runs are its own"
    parser.add_argument("--max-steps", type=int, metavar="N", help=short)
    parser.add_argument("--out", type=Path, metavar="DIR", help="(default: reproduced/TABLE); keeps its finished runs")
    parser.add_argument("--shard", metavar="I/N", help="run the I-th of N parts of the rows, on one of N machines")
    merging = "join the shards in these folders (default: that of --out) and write the page"
    parser.add_argument("--merge", nargs="*", type=Path, metavar="DIR", help=merging)
    parser.add_argument("--unclustered", action="store_true", help=UNCLUSTERED_HELP)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the commands of all rows, or of those of --only, and run nothing"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page of the finished runs, and run nothing")
    samples = "write the files of sampled questions that the commands of --dry-run read, and run nothing"
    parser.add_argument("--write-samples", action="store_true", help=samples)
    return parser


def _fits(row: Row, pattern: str) -> bool:
    return fnmatchcase(row.line, pattern) or fnmatchcase(row.name, pattern)


def _words(options: argparse.Namespace) -> list[str]:
    """The command that runs what ``--dry-run`` lists, rows that need a GPU or a key among them."""
    words = ["lm-eval-rag", "reproduce", options.table, "--only", *(options.only or ["*"])]
    words += ["--without-training"] if options.without_training else []
    given = {"--limit": options.limit, "--max-steps": options.max_steps, "--out": options.out, "--shard": options.shard}
    return words + [text for name, value in given.items() if value is not None for text in (name, str(value))]


def _jsonable(value: Any) -> Any:
    """Dataclasses by field."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON.")
