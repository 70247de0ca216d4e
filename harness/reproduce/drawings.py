"""The data of plots: curves over rows, and gains by the rules trained on and tested on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow
from lm_eval_rag.harness.report.stats import Interval, interval, paired
from lm_eval_rag.harness.reproduce.claims import line_scores
from lm_eval_rag.harness.reproduce.matrix import Plot, Table
from lm_eval_rag.harness.reproduce.numbers import PAPER, numbers_of
from lm_eval_rag.harness.reproduce.row_results import Found


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve: ours with its interval, or the paper's (``ours`` None)."""

    x: float
    ours: Interval | None = None
    paper: float | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot's data on one task: curves by name, or a matrix of gains (rows trained on, columns tested on)."""

    plot: Plot
    task: str
    curves: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    gains: tuple[tuple[Interval | None, ...], ...] = ()
    paper: tuple[tuple[float | None, ...], ...] = ()


def draw(plot: Plot, task: str, table: Table, found: Found, published: Sequence[PublishedRow]) -> Iterable[Drawing]:
    """The drawing of a plot on one task; none where the table has no row for it."""
    drawing = (_banks if plot.kind == "banks" else _curves)(plot, task, table, found, published)
    if drawing is not None:
        yield drawing


def _curves(plot: Plot, task: str, table: Table, found: Found, published: Sequence[PublishedRow]) -> Drawing | None:
    lines = table.lines()
    curves: dict[str, list[Point]] = {}
    for name, rows in lines.items():
        row = rows[0]
        if not row.series or row.x is None or task not in row.tasks:
            continue
        values = line_scores([name], lines, found, task, plot.metric.replace("{x}", f"{row.x:g}"))
        paper = numbers_of(row, task, table.source, published).get(COUNTERPARTS.get(plot.metric, plot.metric))
        point = Point(row.x, interval(list(values.values())) if values else None, paper.value if paper else None)
        if point.ours or point.paper is not None:
            curves.setdefault(row.series, []).append(point)
    if not curves:
        return None
    return Drawing(plot, task, {name: tuple(sorted(points, key=lambda p: p.x)) for name, points in curves.items()})


def _banks(plot: Plot, task: str, table: Table, found: Found, published: Sequence[PublishedRow]) -> Drawing | None:
    lines = table.lines()
    trained = {row.bank: row.line for row in table.rows if row.bank and task in row.tasks}
    base = line_scores([plot.baseline], lines, found, task, plot.metric)
    banks = found[table.lines()[plot.baseline][0].name, task].banks if base else {}
    names = tuple(sorted(trained))
    gains = []
    for train in names:
        ours = line_scores([trained[train]], lines, found, task, plot.metric)
        gains.append(tuple(_gain(ours, base, banks, test) for test in names))
    paper = tuple(
        tuple(_printed(table, plot.metric, task, published, i + 1, j + 1) for j in range(len(names)))
        for i in range(len(names))
    )
    return Drawing(plot, task, names=names, gains=tuple(gains), paper=paper) if names else None


def _gain(ours: Mapping[str, float], base: Mapping[str, float], banks: Mapping[str, str], test: str) -> Interval | None:
    shared = [id_ for id_ in ours if id_ in base and banks.get(id_) == test]
    return paired([ours[i] for i in shared], [base[i] for i in shared]).interval if shared else None


def _printed(
    table: Table, metric: str, task: str, published: Sequence[PublishedRow], train: int, test: int
) -> float | None:
    if metric != "em":
        return None
    note = f"train_rules=R{train}; test_rules=R{test}"
    fitting = (
        row for row in published if (row.paper, row.table, row.task, row.note) == (PAPER, table.source, task, note)
    )
    return next((row.value for row in fitting), None)
