"""The numbers of a report's figures on one task: scores, k-curves, recall against tokens, risk-coverage, slices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lm_eval_rag.harness.report.report_parts import RunReport, TaskReport
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.scoring import METRICS

METRICS_SHOWN = 4  # maximum number of metrics with a figure
SHOWN = 8  # maximum number of slices in a figure


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a figure.

    Args:
        x: Number of passages, prompt tokens a question, or share of questions answered; the slice's place.
        y: Its score, a share of 1, with an interval where there is one.
    """

    x: float
    y: Interval


@dataclass(frozen=True, slots=True)
class PlotData:
    """One figure.

    Args:
        kind: ``scores``, ``k``, ``tokens``, ``coverage`` or ``slices``.
        title: What it shows.
        metric: The score, or ``accuracy of answers``.
        x_label: Of the x axis; "" where it has names.
        points: Name of the run or curve -> its points, in order; () for a run without, so that colours stay the same.
        names: Names of the places on the x axis, for slices.
    """

    kind: str
    title: str
    metric: str
    x_label: str
    points: Mapping[str, tuple[Mark, ...]]
    names: tuple[str, ...] = ()


def plots_of(report: TaskReport) -> Iterable[PlotData]:
    """Every figure that the task's runs have the numbers for."""
    return (plot for make in PLOTS for plot in make(report) if any(plot.points.values()))


def _shares(report: TaskReport) -> list[str]:
    """The first headline metrics that are shares."""
    names = dict.fromkeys(name for run in report.runs for name in run.headline)
    return [name for name in names if name in METRICS and METRICS[name].unit == "share"][:METRICS_SHOWN]


def _scores(report: TaskReport) -> Iterable[PlotData]:
    for name in _shares(report):
        points = {run.run: (Mark(0, run.scores[name]),) if name in run.scores else () for run in report.runs}
        yield PlotData("scores", f"{report.task}: {name} with 95 % intervals", name, "", points)


def _curves(report: TaskReport) -> Iterable[PlotData]:
    for name in _shares(report):
        points: dict[str, tuple[Mark, ...]] = {}
        for run in sorted(report.runs, key=lambda run: run.curve or 0):
            if run.curve is not None and name in run.scores:
                points[run.method] = (*points.get(run.method, ()), Mark(run.curve, run.scores[name]))
        if not name.startswith("recall@"):  # its cutoff does not change with k
            yield PlotData("k", f"{report.task}: {name} by number of passages", name, "passages k", points)


def _tokens(report: TaskReport) -> Iterable[PlotData]:
    def marks(metric: str) -> dict[str, tuple[Mark, ...]]:
        return {run.run: _at_tokens(run, metric) for run in report.runs}

    recalls = [name for name in METRICS if re.fullmatch(r"recall@\d+", name)]
    candidates = [*(name for name in _shares(report) if name in recalls), "pooled_recall_contains", *recalls]
    by_metric = {name: marks(name) for name in candidates}
    metric = max(by_metric, key=lambda name: sum(map(len, by_metric[name].values())))  # of equals the first
    if sum(map(len, by_metric[metric].values())) > 1:
        title = f"{report.task}: {metric} against prompt tokens"
        yield PlotData("tokens", title, metric, "prompt tokens a question", by_metric[metric])


def _at_tokens(run: RunReport, metric: str) -> tuple[Mark, ...]:
    tokens = run.cost.prompt_tokens if run.cost else 0
    return (Mark(tokens / run.questions, run.scores[metric]),) if tokens and metric in run.scores else ()


def _coverage(report: TaskReport) -> Iterable[PlotData]:
    scored = [run.abstention for run in report.runs if run.abstention is not None]
    if any(one.abstained or one.confidence == "confidence" for one in scored):
        curves = {
            run.run: tuple(Mark(share, Interval(accuracy, None, None, 0)) for share, accuracy in _coverage_of(run))
            for run in report.runs
        }
        title = f"{report.task}: accuracy against coverage"
        yield PlotData("coverage", title, "accuracy of answers", "percent of questions answered", curves)


def _coverage_of(run: RunReport) -> tuple[tuple[float, float], ...]:
    return run.abstention.coverage if run.abstention else ()


def _slices(report: TaskReport) -> Iterable[PlotData]:
    names = tuple(list(report.sizes)[:SHOWN])
    for metric in _shares(report)[:1] if len(names) > 1 else ():
        points = {run.run: _marks(run, metric, names) for run in report.runs}
        yield PlotData("slices", f"{report.task}: {metric} by {report.by}", metric, "", points, names)


def _marks(run: RunReport, metric: str, names: Iterable[str]) -> tuple[Mark, ...]:
    by_name = [(i, run.slices.get(name, {}).get(metric)) for i, name in enumerate(names)]
    return tuple(Mark(i, score) for i, score in by_name if score is not None)


PLOTS: tuple[Callable[[TaskReport], Iterable[PlotData]], ...] = (_scores, _curves, _tokens, _coverage, _slices)
