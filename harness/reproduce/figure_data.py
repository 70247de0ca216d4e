"""The numbers of figures: curves over rows, and gains by the rules of training and test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow
from lm_eval_rag.harness.report.stats import Interval, interval, paired
from lm_eval_rag.harness.reproduce.claims import line_scores
from lm_eval_rag.harness.reproduce.published_numbers import PAPER, numbers_of
from lm_eval_rag.harness.reproduce.row_results import Results, clusters_of
from lm_eval_rag.harness.reproduce.table_spec import Plot, Table


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve: our mean with its interval (a share of 1), the paper's number (in percent), or both."""

    x: float
    ours: Interval | None = None
    paper: float | None = None


@dataclass(frozen=True, slots=True)
class FigureData:
    """A plot on one task.

    Args:
        curves: Name -> points by ascending x; {} for a plot of gains.
        names: Parts of the rule bank; () for a plot of curves.
        gains: Our gains, a share of 1; shape (trained on, tested on), in the order of ``names``.
        paper: The paper's gains, in points; same shape.
    """

    plot: Plot
    task: str
    curves: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    gains: tuple[tuple[Interval | None, ...], ...] = ()
    paper: tuple[tuple[float | None, ...], ...] = ()

    @property
    def title(self) -> str:
        """Of the plot, with the task."""
        return f"{self.plot.title} ({self.task})"

    @property
    def metric(self) -> str:
        """Name of the score, for its unit; of a score that depends on x the first."""
        return self.plot.metric.replace("{x}", "1")


def figures_of(table: Table, results: Results, published: Sequence[PublishedRow]) -> Iterable[FigureData]:
    """The figures of all plots on all tasks that the table has rows for."""
    for plot in table.plots:
        for task in dict.fromkeys(task for row in table.rows for task in row.tasks):
            figure = (_gains if plot.kind == "banks" else _curves)(plot, task, table, results, published)
            if figure.curves or figure.names:
                yield figure


def _curves(plot: Plot, task: str, table: Table, results: Results, published: Sequence[PublishedRow]) -> FigureData:
    lines = table.lines()
    curves: dict[str, list[Point]] = {}
    for name, (row, *_) in lines.items():
        if not row.series or row.x is None or task not in row.tasks:
            continue
        scores = line_scores([name], lines, results, task, plot.metric.replace("{x}", f"{row.x:g}"))
        labels = clusters_of(results, task, scores)
        ours = interval(list(scores.values()), clusters=labels) if scores else None
        number = numbers_of(row, task, table.source, published).get(COUNTERPARTS.get(plot.metric, plot.metric))
        point = Point(row.x, ours, number.value if number else None)
        if point.ours or point.paper is not None:
            curves.setdefault(row.series, []).append(point)
    ordered = {name: tuple(sorted(points, key=lambda point: point.x)) for name, points in curves.items()}
    return FigureData(plot, task, ordered)


def _gains(plot: Plot, task: str, table: Table, results: Results, published: Sequence[PublishedRow]) -> FigureData:
    lines = table.lines()
    trained = {row.bank: row.line for row in table.rows if row.bank and task in row.tasks}
    names = tuple(sorted(trained))
    baseline = line_scores([plot.baseline], lines, results, task, plot.metric)
    banks = results[lines[plot.baseline][0].name, task].banks if baseline else {}

    def gain(train: str, test: str) -> Interval | None:
        ours = line_scores([trained[train]], lines, results, task, plot.metric)
        shared = [id_ for id_ in ours if id_ in baseline and banks.get(id_) == test]
        columns = [ours[i] for i in shared], [baseline[i] for i in shared]
        return paired(*columns, clusters=clusters_of(results, task, shared)).interval if shared else None

    def printed(train: int, test: int) -> float | None:
        wanted = (PAPER, table.source, task, "em", f"train_rules=R{train}; test_rules=R{test}")
        rows = [row for row in published if (row.paper, row.table, row.task, plot.metric, row.note) == wanted]
        return rows[0].value if rows else None

    numbers = range(1, len(names) + 1)
    return FigureData(
        plot,
        task,
        names=names,
        gains=tuple(tuple(gain(train, test) for test in names) for train in names),
        paper=tuple(tuple(printed(train, test) for test in numbers) for train in numbers),
    )
