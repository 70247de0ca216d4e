"""Training curves: all rows as JSON, and a figure if matplotlib is installed (extra ``train``)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.extras import install_line

log = logging.getLogger(__name__)
AXES = ("step", "epoch", "seconds")  # columns that are not drawn as curves


def write_curves(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write ``curves.json``, and ``curves.png`` with one panel per column over ``step``.

    Args:
        rows: One mapping per log entry, with ``step`` and the logged numbers.
    """
    (folder / "curves.json").write_text(json.dumps(list(rows), indent=1) + "\n", encoding="utf-8")
    names = list(dict.fromkeys(name for row in rows for name in row if name not in AXES))
    if not names:
        return
    if find_spec("matplotlib") is None:
        log.info("No figure of the curves, because matplotlib is missing (`%s`).", install_line("train"))
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.2 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name in zip(figure.subplots(len(names), squeeze=False)[:, 0], names, strict=True):
        points = [(row["step"], row[name]) for row in rows if name in row]
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 50 else "")
        axes.set_ylabel(name)
    axes.set_xlabel("step")
    figure.savefig(folder / "curves.png", dpi=120)
