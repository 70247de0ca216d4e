"""Figures by matplotlib: curves with intervals, and a matrix of gains, as SVG, PDF and PNG."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.report.drawing import COLOURS, add_legend, inline_svg, new_figure, save
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.report.table import printable
from lm_eval_rag.harness.reproduce.figure_data import FigureData, Point

GAIN, LOSS = "#2e9367", "#d1583b"


def write_figures(figures: Sequence[FigureData], folder: Path) -> list[str]:
    """Write ``figure_1.svg``, ``.pdf`` and ``.png`` and so on into a folder; returns each as SVG for an HTML page."""
    if not figures:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    inline = []
    for number, data in enumerate(figures, start=1):
        with new_figure(4.6, 3.4 if data.curves else 4.4, f"figure {number}") as figure:
            (_draw_curves if data.curves else _draw_gains)(figure, data)
            inline.append(inline_svg(figure))
            figure.suptitle(textwrap.fill(printable(data.title), 46))  # on a page the caption says it
            save(figure, folder, f"figure_{number}")
    return inline


def _draw_curves(figure: Any, data: FigureData) -> None:
    from matplotlib.lines import Line2D

    axes = figure.add_subplot()
    curves = {name: _in_percent(points, data.plot.relative) for name, points in data.curves.items()}
    handles = []
    for number, points in enumerate(curves.values()):
        look: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": "o", "markersize": 4}
        handles.append(Line2D([], [], **look))
        ours = [(point.x, point.ours) for point in points if point.ours]
        for x, one in ours:
            if one.low is not None and one.high is not None:
                axes.plot([x, x], [one.low, one.high], color=look["color"], linewidth=1)
        if ours:
            axes.plot([x for x, _ in ours], [one.mean for _, one in ours], **look)
        theirs = [(point.x, point.paper) for point in points if point.paper is not None]
        if theirs:
            axes.plot(*zip(*theirs, strict=True), linestyle="--", fillstyle="none", **look)
    if any(point.paper is not None for points in curves.values() for point in points):
        handles.append(Line2D([], [], color=COLOURS[-1], linestyle="--"))
    if data.plot.log:
        axes.set_xscale("log")
    xs = sorted({point.x for points in curves.values() for point in points})
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.minorticks_off()
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.grid(axis="y")
    axes.set_xlabel(printable(data.plot.x_label))
    axes.set_ylabel("percent of the curve's best" if data.plot.relative else "percent")
    names = list(curves) + ["the paper"] * (len(handles) - len(curves))
    add_legend(figure, handles, names)


def _in_percent(points: Sequence[Point], relative: bool) -> list[Point]:
    """Ours in percent; where ``relative``, of the curve's best, and without the paper's."""
    best = max((point.ours.mean for point in points if point.ours), default=0.0) if relative else 1.0
    factor = 100 / best if best else 0.0

    def scaled(one: Interval | None) -> Interval | None:
        if one is None:
            return None
        low, high = (None if end is None else end * factor for end in (one.low, one.high))
        return Interval(one.mean * factor, low, high, one.n)

    return [Point(point.x, scaled(point.ours), None if relative else point.paper) for point in points]


def _draw_gains(figure: Any, data: FigureData) -> None:
    """A square for each pair of parts: our gain in points, its interval, and the paper's gain."""
    from matplotlib.patches import Rectangle

    axes = figure.add_subplot()
    means = [100 * one.mean for row in data.gains for one in row if one]
    largest = max(map(abs, means), default=0.0) or 1.0
    for i, row in enumerate(data.gains):
        for j, one in enumerate(row):
            mean = 100 * one.mean if one else math.nan
            shade = 0.08 + 0.6 * abs(mean) / largest if one else 0.0
            colour = GAIN if mean >= 0 else LOSS
            axes.add_patch(Rectangle((j - 0.48, i - 0.48), 0.96, 0.96, color=colour, alpha=shade, linewidth=0))
            if one:
                axes.text(j, i - 0.12, f"{mean:+.1f}", ha="center", va="center", fontsize=13)
                ends = "" if one.low is None or one.high is None else f"{100 * one.low:.1f} to {100 * one.high:.1f}"
                axes.text(j, i + 0.14, ends, ha="center", va="center", fontsize=8)
            if (number := data.paper[i][j]) is not None:
                axes.text(j, i + 0.34, f"paper {number:+.1f}", ha="center", va="center", fontsize=8)
    places, names = range(len(data.names)), [printable(name) for name in data.names]
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), aspect="equal")
    axes.set_xticks(places, names)
    axes.set_yticks(places, names)
    axes.tick_params(length=0)
    axes.set_xlabel("tested on the questions of part")
    axes.set_ylabel("trained on the rules of part")
    axes.spines[:].set_visible(False)
