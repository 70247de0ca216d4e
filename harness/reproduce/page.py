"""The content of a page: every line with our scores and the paper's, the claims, the figures and the mistakes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lm_eval_rag.harness.generators.spec import NO_GENERATOR
from lm_eval_rag.harness.report.cluster_keys import clustering_text
from lm_eval_rag.harness.report.mistakes import Counts, count
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.report.stats import Interval, interval
from lm_eval_rag.harness.reproduce.claims import Tested, judge, line_scores
from lm_eval_rag.harness.reproduce.figure_data import FigureData, figures_of
from lm_eval_rag.harness.reproduce.published_numbers import numbers_of
from lm_eval_rag.harness.reproduce.row_results import Result, Results, clusters_of
from lm_eval_rag.harness.reproduce.running import Job, jobs, sampling_command
from lm_eval_rag.harness.reproduce.table_spec import Claim, Row, Table
from lm_eval_rag.harness.reproduce.verdicts import RowVerdict, compared_of, row_verdict
from lm_eval_rag.harness.scoring import RETRIEVAL_METRICS

RUN, PARTLY_RUN, PUBLISHED_ONLY = "run", "partly run", "published only"


@dataclass(frozen=True, slots=True)
class Score:
    """One line on one task by one metric.

    Args:
        ours: Mean over questions of the mean over seeds, with its interval.
        seeds: Mean of each seed, where there are several.
        paper: The paper's number, in percent.
        doubts: What contradicts the paper's number.
    """

    ours: Interval | None = None
    seeds: tuple[float, ...] = ()
    paper: float | None = None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One line on one task.

    Args:
        scores: Metric -> score.
        questions: Number of questions; 0 where nothing was run.
        unscored: Number of them without a score, over all seeds.
        sampled: Whether they are a sample of the task's questions.
        mistakes: Number of wrong answers by class over all seeds; None where there are none or they have no class.
    """

    scores: Mapping[str, Score]
    questions: int = 0
    unscored: int = 0
    sampled: bool = False
    mistakes: Counts | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the page.

    Args:
        status: ``run``, ``partly run``, ``not run`` with what it needs, ``failed: ...``, or ``published only``.
        commands: Commands that do the same by hand.
        seconds: Duration of its evaluations, without training.
        verdict: Whether it reproduces its published numbers; None on pages without verdicts.
    """

    name: str
    label: str
    status: str
    cells: Mapping[str, Cell]
    commands: tuple[str, ...]
    seconds: float = 0.0
    verdict: RowVerdict | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that a page shows; ``facts`` are names and values: dates and versions of its runs."""

    table: Table
    tasks: tuple[str, ...]
    lines: tuple[Line, ...]
    claims: tuple[tuple[Claim, list[Tested]], ...]
    figures: tuple[FigureData, ...]
    limit: int | None = None
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def provisional(self) -> tuple[str, ...]:
        """Names of the lines of claims that were not, or not wholly, run; the verdicts may change when they are."""
        named = {
            name
            for claim in self.table.claims
            for name in (*claim.better, *claim.worse, *(one for names in claim.controls.values() for one in names))
        }
        return tuple(line.name for line in self.lines if line.name in named and line.status != RUN)

    @property
    def unscored(self) -> dict[str, int]:
        """Number of questions without a score, over all tasks and seeds, of each line that has some."""
        counts = {line.name: sum(own.unscored for own in line.cells.values()) for line in self.lines}
        return {name: count for name, count in counts.items() if count}


def make_page(
    table: Table,
    results: Results,
    published: Sequence[PublishedRow],
    *,
    failed: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Page:
    """The content of the page of everything that has been run so far.

    Args:
        results: Results of rows and tasks.
        published: The papers' numbers.
        failed: Name of a row -> why it failed just now.
        limit: Number of questions of each task that the rows were limited to.
    """

    def line(name: str, rows: Sequence[Row]) -> Line:
        cells = {task: _cell(rows, task, table, results, published, limit) for task in rows[0].tasks}
        all_jobs = [job for row in rows for job in jobs(row)]
        seconds = sum(_seconds(job, results) for job in all_jobs)
        status = _status(rows, results, failed or {})
        verdict = None
        if table.verdicts:
            ran = any((row.name, task) in results for row in rows for task in row.tasks)
            numbers = compared_of(cells, rows[0].published_questions)
            verdict = row_verdict(numbers, run=ran, differs=rows[0].differs, limit=limit, margin=table.margin)
        return Line(name, rows[0].label, status, cells, tuple(_commands(all_jobs, table)), seconds, verdict)

    return Page(
        table,
        tasks=tuple(dict.fromkeys(task for row in table.rows for task in row.tasks)),
        lines=tuple(line(name, rows) for name, rows in table.lines().items()),
        claims=tuple(judge(table, results)),
        figures=tuple(figures_of(table, results, published)),
        limit=limit,
        facts=tuple(_facts(results)),
    )


def _facts(results: Results) -> Iterable[tuple[str, str]]:
    """Names and values: dates, versions of the tasks, packages."""
    dates = sorted({result.date for result in results.values()} - {""})
    tasks = {f"{task} {result.version}" for (_, task), result in results.items() if result.version}
    keys = {task: result.keys for (_, task), result in results.items() if result.keys}
    packages = {package for result in results.values() for package in result.packages}
    if dates:
        yield "Runs", dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    ways: dict[str, list[str]] = {}
    for task, own in keys.items():
        ways.setdefault(clustering_text(own), []).append(task)
    if ways:
        yield "Clusters", ". ".join(f"{', '.join(names)}: {way}" for way, names in ways.items())
    yield from (
        (name, ", ".join(sorted(own))) for name, own in (("Task versions", tasks), ("Run with", packages)) if own
    )


def _cell(
    rows: Sequence[Row],
    task: str,
    table: Table,
    results: Results,
    published: Sequence[PublishedRow],
    limit: int | None,
) -> Cell:
    own = [results[row.name, task] for row in rows if (row.name, task) in results]
    numbers = numbers_of(rows[0], task, table.source, published)
    mistakes = [one for result in own for one in result.mistakes.values()]

    def score(metric: str) -> Score:
        scores = line_scores([rows[0].line], table.lines(), results, task, metric)
        values, labels = list(scores.values()), clusters_of(results, task, scores)
        number = numbers.get(metric)
        return Score(
            interval(values, clusters=labels) if values else None,
            tuple(_means(own, metric)) if len(rows) > 1 else (),
            number.value if number else None,
            number.doubts if number else (),
        )

    return Cell(
        {metric: score(metric) for metric in shown_metrics(rows[0], table)},
        questions=own[0].questions if own else 0,
        unscored=sum(result.unscored for result in own),
        sampled=bool(own) and limit is None and task in rows[0].sample,
        mistakes=count(mistakes) if mistakes else None,
    )


def shown_metrics(row: Row, table: Table) -> list[str]:
    """The table's scores; for a row without a generator only those of retrieval."""
    return [m for m in table.metrics if row.arguments.get("generator") != NO_GENERATOR or m in RETRIEVAL_METRICS]


def _means(results: Iterable[Result], metric: str) -> Iterable[float]:
    for result in results:
        values = result.scores.get(metric, {}).values()
        if values:
            yield sum(values) / len(values)


def _seconds(job: Job, results: Results) -> float:
    """Duration of one evaluation; each of its tasks has the duration of the whole."""
    keys = [(job.row.name, task) for task in job.tasks]
    return max((results[key].seconds for key in keys if key in results), default=0.0)


def _status(rows: Sequence[Row], results: Results, failed: Mapping[str, str]) -> str:
    reasons = [failed[row.name] for row in rows if row.name in failed]
    done = [(row.name, task) in results for row in rows for task in row.tasks]
    if reasons:
        return f"failed: {reasons[0]}"
    if not rows[0].model:
        return PUBLISHED_ONLY
    if any(done):
        return RUN if all(done) else PARTLY_RUN
    return f"not run: needs {rows[0].needs}" if rows[0].needs else "not run"


def _commands(all_jobs: Sequence[Job], table: Table) -> Iterable[str]:
    """Sampling, training and evaluation by hand, then the one command that does all."""
    name, out = table.file or table.name, Path("reproduced") / table.name
    if any(job.sample for job in all_jobs):
        yield sampling_command(name, out, [all_jobs[0].row.line])
    yield from dict.fromkeys(line for job in all_jobs for line in job.commands(out))
    if all_jobs:
        words = ["lm-eval-rag", "reproduce", name, "--only", all_jobs[0].row.line]
        words += [] if table.max_steps is None else ["--max-steps", str(table.max_steps)]
        trained = any(job.steps for job in all_jobs)
        yield f"# {'training and evaluation in one' if trained else 'the same, with this page'}: {shlex.join(words)}"
