"""The page itself: a summary with the scores of every run, the list of questions, and their data in chunks.

The page needs no other file and no network: its Content-Security-Policy allows its own script and style and nothing
else. The summary is written by jinja2 with autoescape; all else is set by the script as text, never as HTML.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from itertools import groupby
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.report.cells import cell
from lm_eval_rag.harness.report.content import build
from lm_eval_rag.harness.report.report_parts import Comparison, TaskReport
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.report.run_report import HEADLINE
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.harness.view.view_chunks import Chunk, chunks, line_of, pack
from lm_eval_rag.harness.view.view_rows import question_ids, read_views, row, slice_keys, whole

SIGNIFICANT = 0.05
SCRIPTS = ("view_filters.js", "view_question.js", "view.js")  # one script, in this order


@dataclass(frozen=True, slots=True)
class Notice:
    """What stands in the place of the scores, on a page of runs whose means say nothing.

    Args:
        link: Where the page belongs.
    """

    title: str
    text: str
    link: str


def page_of(runs: Sequence[TaskRun], task: str | None = None, seed: int = 0, notice: Notice | None = None) -> str:
    """The page of runs as HTML.

    Args:
        runs: Runs as :func:`~lm_eval_rag.harness.report.run_files.read_runs` reads them.
        task: The only task to show; None shows all.
        seed: Seed of the bootstrap.
        notice: Stands in the place of the scores; then the same runs give the same page, without a date.

    Raises:
        UserError: No run has the task, runs side by side have different tasks, or were asked different questions.
    """
    from jinja2 import Environment

    runs = _chosen(runs, task)
    reports = [] if notice else build(runs, seed=seed)
    index, packed = _data(runs)
    script, style = "".join(map(_file, SCRIPTS)), _file("view.css")
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_file("view.html.jinja"))
    return template.render(
        tasks=list(dict.fromkeys(run.task for run in runs)),
        notice=notice,
        labels=index["runs"],
        summaries=[_summary(report) for report in reports],
        runs=[(run.label, run.task, str(run.path)) for run in runs],
        index=pack(line_of(index)),
        chunks=[chunk.text for chunk in packed],
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        made=None if notice else f"{datetime.now():%Y-%m-%d %H:%M}",
    )


def _data(runs: Sequence[TaskRun]) -> tuple[dict[str, Any], list[Chunk]]:
    """What the list and the filters need, and the chunks of the questions in the same order."""
    labels = list(dict.fromkeys(run.label for run in runs))
    views = sorted(read_views(runs), key=lambda view: labels.index(view.run.label))
    tasks = [[view for view in views if view.run.task == task] for task in dict.fromkeys(run.task for run in runs)]
    questions = [(own, id_) for own in tasks for id_ in question_ids(own)]
    metrics = outcome_metrics(runs)
    keys = {own[0].run.task: slice_keys(own) for own in tasks}
    with Meter("page", len(questions), "questions") as meter:
        packed = list(chunks(_counted((whole(own, id_) for own, id_ in questions), meter)))
    index = {
        "runs": labels,
        "traced": [any(view.steps for view in views if view.run.label == label) for label in labels],
        "metrics": [{"name": name, "higher": _higher(name)} for name in metrics],
        "chunks": [chunk.lines for chunk in packed],
        "rows": [row(own, id_, metrics, keys[own[0].run.task]) for own, id_ in questions],
    }
    return index, packed


def _counted(values: Iterable[Any], meter: Meter) -> Iterator[Any]:
    for value in values:
        yield value
        meter.update()


def _chosen(runs: Sequence[TaskRun], task: str | None) -> list[TaskRun]:
    """The runs of a task, or all runs; every label must then have the same tasks."""
    known = list(dict.fromkeys(run.task for run in runs))
    if task is not None and task not in known:
        raise UserError(f"No run has the task {task!r}. These runs have: {', '.join(known)}.")
    chosen = [run for run in runs if task in (None, run.task)]
    tasks = {label: {run.task for run in chosen if run.label == label} for label in {run.label for run in chosen}}
    if len({frozenset(own) for own in tasks.values()}) > 1:
        listed = "; ".join(f"{label}: {', '.join(sorted(own))}" for label, own in sorted(tasks.items()))
        raise UserError(
            f"Runs are shown side by side only on the same tasks ({listed}). Choose one of them with --task TASK, or "
            "view the runs one by one."
        )
    return chosen


def outcome_metrics(runs: Sequence[TaskRun]) -> list[str]:
    """The metrics that can tell right from wrong: shares, headline metrics first."""
    known = dict.fromkeys(name for run in runs for name in run.scores)
    names = [name for name in HEADLINE if name in known] + [name for name in known if name not in HEADLINE]
    return [name for name in names if _is_share(name, runs)]


def _is_share(name: str, runs: Sequence[TaskRun]) -> bool:
    base = name.partition(",")[0]
    if base in METRICS:
        return METRICS[base].unit == "share"
    return all(-1 <= value <= 1 for run in runs for value in run.scores.get(name, {}).values())


def _higher(name: str) -> bool:
    base = name.partition(",")[0]
    return METRICS[base].higher_is_better if base in METRICS else True


def _summary(report: TaskReport) -> dict[str, Any]:
    """Scores with intervals per run and the differences between runs, as texts."""
    known = dict.fromkeys(name for run in report.runs for name in run.scores)
    names = list(dict.fromkeys(name for run in report.runs for name in run.headline)) or list(known)[: len(HEADLINE)]
    pairs = groupby(report.comparisons, key=lambda one: (one.first, one.second))
    return {
        "task": report.task,
        "metrics": names,
        "runs": [
            (run.run, run.questions, len(run.unscored), [(name, cell(run.scores.get(name), name)) for name in names])
            for run in report.runs
        ],
        "differences": [(f"{second} − {first}", [_difference(one) for one in own]) for (first, second), own in pairs],
    }


def _difference(one: Comparison) -> tuple[str, str, str]:
    """Metric, difference with interval, and whether it is significant after Holm's correction."""
    difference, p = one.difference.interval, one.p_holm
    text = ("+" if difference.mean > 0 else "") + cell(difference, one.metric)
    verdict = "significant" if p < SIGNIFICANT else "not significant"
    return one.metric, text, f"{verdict} ({'p < 0.001' if p < 0.001 else f'p = {p:.3f}'})"


def _file(name: str) -> str:
    return files("lm_eval_rag.harness.view").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
