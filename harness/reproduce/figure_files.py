"""Figures by matplotlib: curves with intervals, and a matrix of gains, as SVG, PDF and PNG."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.report.table import printable
from lm_eval_rag.harness.reproduce.figure_data import FigureData, Point

COLOURS = ("#3b6fd4", "#d1583b", "#2e9367", "#9259c4", "#b8860b", "#3f93ad", "#cc4488", "#7a7f87")  # on white and black
GAIN, LOSS, LINES = "#2e9367", "#d1583b", "#8d96a366"
SUFFIXES = ("svg", "pdf", "png")
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib; a page puts its own in, and its colour of text
    "text.parse_math": False,  # labels are plain text, also with a $
    "axes.edgecolor": LINES,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.titlesize": 11,
    "grid.color": LINES,
    "xtick.color": LINES,
    "ytick.color": LINES,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "svg.fonttype": "none",
}
UNDATED: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}


def why_no_figures() -> str:
    """What to install where matplotlib is missing; "" where it is there."""
    try:
        need("Drawing the figures", "plots", "matplotlib")
    except UserError as error:
        return str(error)
    return ""


def write_figures(figures: Sequence[FigureData], folder: Path) -> list[str]:
    """Write ``figure_1.svg``, ``.pdf`` and ``.png`` and so on into a folder; returns each as SVG for an HTML page."""
    if not figures:
        return []
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    inline = []
    for number, data in enumerate(figures, start=1):
        with mpl.rc_context({**STYLE, "svg.hashsalt": f"figure {number}"}):  # so ids are stable, and differ on a page
            figure = Figure(figsize=(4.6, 3.4) if data.curves else (4.6, 4.4), layout="constrained")
            FigureCanvasAgg(figure)
            (_draw_curves if data.curves else _draw_gains)(figure, data)
            inline.append(_for_page(_svg(figure)))
            figure.suptitle(textwrap.fill(printable(data.title), 46))  # on a page the caption says it
            for suffix in SUFFIXES:
                figure.savefig(folder / f"figure_{number}.{suffix}", dpi=200, metadata=UNDATED[suffix])
    return inline


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata=UNDATED["svg"])
    return text.getvalue()


def _for_page(svg: str) -> str:
    """The ``<svg>`` element for use in a page: no style of its own, and only ids that are referred to."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r'<g id="[^"]*"', "<g", svg)


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
    names = [textwrap.fill(printable(name), 48) for name in curves] + ["the paper"] * (len(handles) - len(curves))
    columns = max(1, 320 // (6 * max(map(len, names)) + 36))  # points: the figure's width, a letter's, a handle's
    legend = figure.legend(handles, ["-"] * len(names), loc="outside lower center", ncols=columns, columnspacing=1)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)  # as a label, a name with a leading _ would be left out


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
