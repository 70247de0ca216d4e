"""A report as data: JSON with everything, and CSV with one number per row. Shares are between 0 and 1 in both."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lm_eval_rag.harness.report.document import Document
from lm_eval_rag.harness.report.report_parts import RunReport, TaskReport
from lm_eval_rag.harness.report.stats import DRAWS, LEVEL, Interval
from lm_eval_rag.harness.report.table import printable

COLUMNS = ("task", "kind", "run", "against", "slice", "metric", "value", "low", "high", "n", "p", "p_holm", "test")


def render_json(document: Document) -> str:
    """Every number of the report, unrounded."""
    content = {
        "level": LEVEL,
        "draws": DRAWS,
        "seed": document.seed,
        "facts": dict(document.facts),
        "tasks": document.reports,
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, default=dataclasses.asdict) + "\n"
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)  # safe on a terminal


def render_csv(document: Document) -> str:
    """One row per number: of kind ``score``, ``slice``, ``weighted``, ``abstention``, ``difference`` or ``cost``."""
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    rows.writeheader()
    for report in document.reports:
        for row in (*_scores(report), *_differences(report)):
            texts = {key: printable(value) if isinstance(value, str) else value for key, value in row.items()}
            rows.writerow({"task": printable(report.task), **texts})
    return text.getvalue()


def _scores(report: TaskReport) -> Iterable[dict[str, Any]]:
    for run in report.runs:
        kinds: list[tuple[str, str, Mapping[str, Interval]]] = [
            ("score", "", run.scores),
            *(("slice", name, scores) for name, scores in run.slices.items()),
            ("weighted", "", run.weighted),
            ("abstention", "", run.abstention.scores if run.abstention else {}),
        ]
        for kind, slice_, scores in kinds:
            for metric, score in scores.items():
                yield {"kind": kind, "run": run.run, "slice": slice_, "metric": metric, **_numbers(score)}
        for name, value in _costs(run):
            yield {"kind": "cost", "run": run.run, "metric": name, "value": value, "n": run.questions}


def _costs(run: RunReport) -> Iterable[tuple[str, float]]:
    yield "questions", run.questions
    yield "unscored", len(run.unscored)
    if run.cost is not None:
        names = ("prompt_tokens", "completion_tokens", "seconds_p50", "seconds_p95", "dropped_passages")
        yield from ((name, getattr(run.cost, name)) for name in names)
        yield from [] if run.cost.dollars is None else [("dollars", run.cost.dollars)]
        yield from ((f"calls {kind}", number) for kind, number in run.cost.calls.items())
    for one in run.prepared:
        costs = {name: value for name, value in dataclasses.asdict(one).items() if name != "name" and value is not None}
        yield from ((f"preparation {one.name} {name}", value) for name, value in costs.items())


def _differences(report: TaskReport) -> Iterable[dict[str, Any]]:
    for one in report.comparisons:
        tested = {"p": one.difference.p, "p_holm": one.p_holm, "test": one.difference.test}
        runs = {"run": one.second, "against": one.first, "metric": one.metric}
        yield {"kind": "difference", **runs, **_numbers(one.difference.interval), **tested}


def _numbers(score: Interval) -> dict[str, Any]:
    ends = {name: "" if end is None else end for name, end in (("low", score.low), ("high", score.high))}
    return {"value": score.mean, **ends, "n": score.n}
