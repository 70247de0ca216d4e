"""The metrics: what each measures, its formula and its source."""

from __future__ import annotations

import inspect
import re
import sys
from functools import partial
from types import FunctionType
from typing import Any

from lm_eval_rag.describe.description import Description
from lm_eval_rag.describe.docstrings import OWN, Docstring, papers, read_docstring
from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.scoring import METRICS

OWN_SOURCE = "this project"
SCORES = ("precision", "recall", "F1")
PARTS = {"sp": "supporting facts", "triples": "triples", "joint": "answer and evidence jointly"}


def metrics() -> tuple[str, ...]:
    """The names of all metrics."""
    return tuple(METRICS)


def metric(name: str) -> Description:
    """A metric by name.

    Raises:
        UserError: There is none.
    """
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    one = METRICS[name]
    function, fixed = (one.of.func, one.of.keywords) if isinstance(one.of, partial) else (one.of, {})
    assert isinstance(function, FunctionType)
    own = read_docstring(inspect.getdoc(function))
    background = read_docstring(inspect.getdoc(sys.modules[function.__module__]))
    better = "higher" if one.higher_is_better else "lower"
    unit = {"share": "a share, shown in percent"}.get(one.unit, one.unit)
    return Description(
        kind="metric",
        name=name,
        summary=_filled(own.summary, fixed).replace("of a part", f"of {PARTS.get(name.partition('_')[0])}"),
        usage=f"lm-eval-rag report RUN --metrics {name}",
        text=(*(_filled(text, fixed) for text in own.text), *_of_part(fixed)),
        sources=_sources(own, background),
        notes=(("unit", unit), ("better", better), *_background(background)),
    )


def _sources(own: Docstring, background: Docstring) -> tuple[str, ...]:
    """The papers of the metric's docstring, else those of its file's; or this project, where one says so."""
    if OWN in " ".join((own.summary, *own.text)).lower():
        return (OWN_SOURCE,)
    return papers(own.summary, *own.text) or background.papers


def _background(of_file: Docstring) -> tuple[tuple[str, str], ...]:
    """What holds for all metrics of a file, one note a paragraph."""
    return tuple(("about its kind", text) for text in (of_file.summary, *of_file.text))


def _filled(text: str, fixed: dict[str, Any]) -> str:
    """A text with the values of parameters that this metric fixes."""
    if "k" in fixed:
        text = text.replace("`k`", str(fixed["k"])).replace("if k is", f"if {fixed['k']} is")
    if "which" in fixed:
        text = re.sub(r"^Precision \(0\), recall \(1\) or F1 \(2\)", f"The {SCORES[fixed['which']]}", text)
    return text


def _of_part(fixed: dict[str, Any]) -> tuple[str, ...]:
    """What the part is that an official score is of."""
    part = fixed.get("part")
    return () if part is None else (f"The part: {read_docstring(inspect.getdoc(part)).summary}",)
