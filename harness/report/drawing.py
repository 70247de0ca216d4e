"""What all figures share: style, the file formats, and figures as SVG inside a page."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.report.table import printable

COLOURS = ("#3b6fd4", "#d1583b", "#2e9367", "#9259c4", "#b8860b", "#3f93ad", "#cc4488", "#7a7f87")  # on white and black
LINES = "#8d96a366"
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


@contextmanager
def new_figure(width: float, height: float, salt: str) -> Iterator[Any]:
    """A figure in our style, of a size in inches; ``salt`` makes its ids stable, and different from other figures'."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, "svg.hashsalt": salt}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def add_legend(figure: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """A legend below the figure, in as many columns as fit; names are plain texts."""
    names = [textwrap.fill(printable(name), 48) for name in names]
    width = 72 * figure.get_figwidth() - 12  # points
    columns = max(1, int(width // (6 * max(map(len, names)) + 36)))  # a letter's width, a handle's
    legend = figure.legend(handles, ["-"] * len(names), loc="outside lower center", ncols=columns, columnspacing=1)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)  # as a label, a name with a leading _ would be left out


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG, PDF and PNG, without dates, so that equal figures are equal files."""
    paths = [folder / f"{name}.{suffix}" for suffix in SUFFIXES]
    for path in paths:
        figure.savefig(path, dpi=200, metadata=UNDATED[path.suffix[1:]])
    return paths


def inline_svg(figure: Any) -> str:
    """The ``<svg>`` element for use in a page: no style of its own, and only ids that are referred to."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata=UNDATED["svg"])
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r'<g id="[^"]*"', "<g", svg)
