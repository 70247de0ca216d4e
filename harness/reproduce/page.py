"""The content of a page: every line with our scores and the paper's, the claims, the mistakes, the plots."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lm_eval_rag.harness.report.mistakes import Counts, count
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.report.stats import Interval, interval
from lm_eval_rag.harness.reproduce.claims import Tested, judge, line_scores
from lm_eval_rag.harness.reproduce.drawings import Drawing, draw
from lm_eval_rag.harness.reproduce.matrix import Claim, Row, Table
from lm_eval_rag.harness.reproduce.numbers import numbers_of
from lm_eval_rag.harness.reproduce.row_results import RETRIEVAL, SILENT, Found
from lm_eval_rag.harness.reproduce.running import Job, jobs


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
        questions: Number asked; 0 where nothing was run.
        unscored: Of them without a score.
        drawn: Whether they are a seeded draw of the task's.
        mistakes: Classes of the wrong answers over all seeds, or None where none can be told.
    """

    scores: Mapping[str, Score]
    questions: int = 0
    unscored: int = 0
    drawn: bool = False
    mistakes: Counts | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the page.

    Args:
        status: ``run``, ``run in part``, ``not run`` with what it needs, ``failed: ...``, or ``only published``.
        commands: What to type for the same by hand.
        seconds: Of its evaluations, training not counted.
    """

    name: str
    label: str
    status: str
    cells: Mapping[str, Cell]
    commands: tuple[str, ...]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that a page shows."""

    table: Table
    tasks: tuple[str, ...]
    lines: tuple[Line, ...]
    claims: tuple[tuple[Claim, list[Tested]], ...]
    drawings: tuple[Drawing, ...]
    limit: int | None = None


def make_page(
    table: Table,
    found: Found,
    published: Sequence[PublishedRow],
    *,
    failed: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Page:
    """The content of the page of what has been run so far.

    Args:
        found: Results of rows and tasks.
        published: The papers' numbers.
        failed: Name of a row -> why it failed just now.
        limit: What the rows were limited to, to say so.
    """
    tasks = tuple(dict.fromkeys(task for row in table.rows for task in row.tasks))
    lines = [_line(name, rows, table, found, published, failed or {}, limit) for name, rows in table.lines().items()]
    drawn = [drawing for plot in table.plots for task in tasks for drawing in draw(plot, task, table, found, published)]
    return Page(table, tasks, tuple(lines), tuple(judge(table, found)), tuple(drawn), limit)


def _line(
    name: str,
    rows: Sequence[Row],
    table: Table,
    found: Found,
    published: Sequence[PublishedRow],
    failed: Mapping[str, str],
    limit: int | None,
) -> Line:
    lines, first = table.lines(), rows[0]
    every = [job for row in rows for job in jobs(row)]
    done = [(row.name, task) in found for row in rows for task in row.tasks]
    cells = {}
    for task in first.tasks:
        numbers = numbers_of(first, task, table.source, published)
        results = [found[row.name, task] for row in rows if (row.name, task) in found]
        scores = {}
        for metric in shown_metrics(first, table):
            values = line_scores([name], lines, found, task, metric)
            means = [_mean(result.scores.get(metric, {}).values()) for result in results] if len(rows) > 1 else []
            paper = numbers.get(metric)
            scores[metric] = Score(
                interval(list(values.values())) if values else None,
                tuple(mean for mean in means if mean is not None),
                paper.value if paper else None,
                paper.doubts if paper else (),
            )
        wrong = [one for result in results for one in result.mistakes.values()]
        cells[task] = Cell(
            scores,
            questions=results[0].questions if results else 0,
            unscored=sum(result.unscored for result in results),
            drawn=bool(results) and limit is None and task in first.sample,
            mistakes=count(wrong) if wrong else None,
        )
    jobs_ = {(job.row.name, job.tasks): job for job in every}
    seconds = sum(max(found[row, t].seconds for t in tasks if (row, t) in found) for row, tasks in jobs_
                  if any((row, t) in found for t in tasks))  # fmt: skip
    return Line(name, first.label, _status(rows, done, failed), cells, tuple(_commands(every, table)), seconds)


def shown_metrics(row: Row, table: Table) -> list[str]:
    """The table's scores, without those of answers where nothing answers."""
    return [m for m in table.metrics if row.arguments.get("generator") != SILENT or m in RETRIEVAL]


def _status(rows: Sequence[Row], done: Sequence[bool], failed: Mapping[str, str]) -> str:
    why = [failed[row.name] for row in rows if row.name in failed]
    if why:
        return f"failed: {why[0]}"
    if all(done) and rows[0].model:
        return "run"
    if any(done):
        return "run in part"
    if not rows[0].model:
        return "only published"
    return f"not run: needs {rows[0].needs}" if rows[0].needs else "not run"


def _commands(every: Iterable[Job], table: Table) -> Iterable[str]:
    """Training and evaluation by hand; and for a draw of questions, which numbers ``samples.json`` must hold."""
    listed = list(every)
    yield from dict.fromkeys(line for job in listed for line in job.commands())
    if listed:
        yield f"# both at once: lm-eval-rag reproduce {table.name} --only {shlex.quote(listed[0].row.line)}"


def _mean(values: Iterable[float]) -> float | None:
    given = list(values)
    return sum(given) / len(given) if given else None
