"""The figures of a report by matplotlib, as files and as SVG for the page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.report.document import Document
from lm_eval_rag.harness.report.drawing import COLOURS, add_legend, inline_svg, new_figure, save, why_no_figures
from lm_eval_rag.harness.report.plots import Mark, PlotData
from lm_eval_rag.harness.report.table import printable

WIDTH = 4.6  # inches, as in the column of a paper


def write_plots(document: Document, folder: Path) -> list[Path]:
    """Write every figure as SVG, PDF and PNG, named by task and kind, and return the files.

    Raises:
        UserError: matplotlib is not installed, or the folder cannot be written.
    """
    if why := why_no_figures():
        raise UserError(why)
    output_folder(folder, "--figures")
    files = []
    for section, report in zip(document.sections, document.reports, strict=False):
        for plot in section.plots:
            name = "_".join([report.task, plot.kind, *([plot.metric] if plot.kind in ("scores", "k") else [])])
            with _figure(plot, name) as figure:
                figure.suptitle(textwrap.fill(printable(plot.title), 46))  # on a page the caption says it
                files += save(figure, folder, re.sub(r"[^A-Za-z0-9_@-]+", "_", name))
    return files


def draw(plot: PlotData, salt: str) -> str:
    """A figure as ``<svg>`` for a page."""
    with _figure(plot, salt) as figure:
        return inline_svg(figure)


@contextmanager
def _figure(plot: PlotData, salt: str) -> Iterator[Any]:
    heights = {"scores": 0.8 + 0.26 * len(plot.points)}
    with new_figure(WIDTH, heights.get(plot.kind, 3.0 + 0.12 * len(plot.points)), salt) as figure:
        DRAW[plot.kind](figure, figure.add_subplot(), plot)
        yield figure


def _draw_scores(figure: Any, axes: Any, plot: PlotData) -> None:
    """A row per run and a dot with its interval."""
    for place, (colour, marks) in enumerate(_coloured(plot)):
        for mark in marks:
            _interval(axes, mark, place, colour, flat=True)
    names = [textwrap.shorten(printable(name), 40) for name in plot.points]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")
    axes.set_xlabel(f"{printable(plot.metric)}, percent")


def _draw_curves(figure: Any, axes: Any, plot: PlotData) -> None:
    """A curve per method over k."""
    for colour, marks in _coloured(plot):
        for mark in marks:
            _interval(axes, mark, mark.x, colour)
        axes.plot([mark.x for mark in marks], [100 * mark.y.mean for mark in marks], color=colour)
    xs = sorted({mark.x for marks in plot.points.values() for mark in marks})
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    _finish(figure, axes, plot)


def _draw_points(figure: Any, axes: Any, plot: PlotData) -> None:
    """A dot per run with its interval."""
    for colour, marks in _coloured(plot):
        for mark in marks:
            _interval(axes, mark, mark.x, colour)
    axes.set_xlim(left=0)
    _finish(figure, axes, plot)


def _draw_coverage(figure: Any, axes: Any, plot: PlotData) -> None:
    """Accuracy of the answers at each share of questions answered; the last point is the run as it is."""
    for colour, marks in _coloured(plot):
        xs, ys = [100 * mark.x for mark in marks], [100 * mark.y.mean for mark in marks]
        axes.plot(xs, ys, color=colour, linewidth=1.2)
        axes.plot(xs[-1:], ys[-1:], color=colour, marker="o", markersize=5)
    axes.set_xlim(0, 102)
    _finish(figure, axes, plot)


def _draw_slices(figure: Any, axes: Any, plot: PlotData) -> None:
    """A group of dots per slice, one colour per run."""
    runs = len(plot.points)
    for i, (colour, marks) in enumerate(_coloured(plot)):
        for mark in marks:
            _interval(axes, mark, mark.x + (i - (runs - 1) / 2) * 0.6 / runs, colour)
    names = [textwrap.fill(printable(name), 14) for name in plot.names]
    axes.set_xticks(range(len(names)), names, fontsize=9 if len(names) < 6 else 7)
    _finish(figure, axes, plot)


def _interval(axes: Any, mark: Mark, place: float, colour: str, flat: bool = False) -> None:
    """A dot with a line over its interval, both in percent."""
    ends = () if mark.y.low is None or mark.y.high is None else (100 * mark.y.low, 100 * mark.y.high)
    for values, look in ((ends, {"linewidth": 1.4}), ((100 * mark.y.mean,), {"marker": "o", "markersize": 5})):
        places = [place] * len(values)
        axes.plot(*((values, places) if flat else (places, values)), color=colour, **look)


def _coloured(plot: PlotData) -> Iterable[tuple[str, tuple[Mark, ...]]]:
    """Colour and points of each run or curve."""
    return zip(cycle(COLOURS), plot.points.values(), strict=False)


def _finish(figure: Any, axes: Any, plot: PlotData) -> None:
    from matplotlib.lines import Line2D

    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.grid(axis="y")
    axes.set_xlabel(printable(plot.x_label))
    axes.set_ylabel(f"{printable(plot.metric)}, percent")
    handles = [Line2D([], [], color=colour, marker="o", markersize=4) for colour, marks in _coloured(plot) if marks]
    add_legend(figure, handles, [name for name, marks in plot.points.items() if marks])


DRAW: dict[str, Callable[[Any, Any, PlotData], None]] = {
    "scores": _draw_scores,
    "k": _draw_curves,
    "tokens": _draw_points,
    "coverage": _draw_coverage,
    "slices": _draw_slices,
}
