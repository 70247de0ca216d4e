"""The content of a report: scores with intervals, slices, paired differences, costs, and published numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.report.abstention_scores import AREA, RATIOS, Weights
from lm_eval_rag.harness.report.clusters import Clusters
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.report.report_parts import Comparison, TaskReport
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.report.run_report import ReportOptions, run_report
from lm_eval_rag.harness.report.stats import Difference, holm, paired
from lm_eval_rag.harness.report.trivial_baselines import trivial_first
from lm_eval_rag.harness.scoring import METRICS

SLICES = (  # keys of our tasks' documents that define slices; a task of the user's may have others
    *("slice", "change", "rule_confidence", "subject_documents", "seen", "popularity", "relation"),
    *("domain", "question_type", "static_or_dynamic", "split"),
)
ALSO = {"slice": "change"}  # key of the slices -> a second key that is shown with it, where documents have it
ORDER = {  # of the slices' values; other values are sorted by size
    name: i
    for i, name in enumerate(
        (
            *("direct", "reverse", "rule_required", "other_link", "nowhere", "unreachable", "stable", "changed"),
            *("below 0.1", "0.1 to 0.5", "above 0.5", "head", "torso", "tail"),
        )
    )
}


def build(
    runs: Sequence[TaskRun],
    by: str = "slice",
    published: Iterable[PublishedRow] = (),
    seed: int = 0,
    against: str | None = None,
    metrics: Sequence[str] = (),
    weights: Weights | None = None,
    clustered: bool = True,
    apart: bool = False,
) -> list[TaskReport]:
    """One report per task, in the order of the runs; the runs of trivial baselines come first.

    Args:
        by: Key that defines the slices.
        published: The papers' rows.
        seed: Seed of the bootstrap.
        against: Label of the run that the others are compared with; None compares all pairs. Fewer comparisons need a
            smaller correction.
        metrics: The only metrics of the report, in this order; () for all, with those that the task declares as its
            headline in slices and differences.
        weights: Weights of groups of questions, for weighted means.
        clustered: Whether intervals and tests are clustered by the keys that a task declares.
        apart: Whether runs of different versions of a task get reports of their own, instead of being refused.

    Raises:
        UserError: No question has the key ``by``, runs of one task have different questions under the same id or
            different versions, no run has the label ``against`` or one of the ``metrics``, or ``seed`` is negative.
    """
    labels = {run.label for run in runs}
    if against is not None and against not in labels:
        raise unknown("run", against, labels)
    at_least("seed", seed, 0)
    columns = {name for run in runs for sample in run.questions.values() for name in sample["doc"]}
    if by not in {*SLICES, *columns}:
        raise unknown("column of the questions", by, (name for name in columns if not name.startswith("_")))
    known = {name for run in runs for name in run.scores}
    known |= {*RATIOS, AREA} if any("crag_missing" in run.scores for run in runs) else set()
    for metric in metrics:
        if metric not in known:
            raise unknown("metric", metric, known)
    tasks: dict[tuple[str, str], list[TaskRun]] = {}
    for run in trivial_first(runs):
        tasks.setdefault((run.task, run.version if apart else ""), []).append(run)
    rows = tuple(published)
    options = ReportOptions(by, seed, against, tuple(metrics), weights, clustered)
    reports = [_task_report(task, members, options, rows) for (task, _), members in tasks.items()]
    reports = [_named_apart(report, reports) for report in reports]
    adjusted = iter(holm([c.difference.p for report in reports for c in report.comparisons]))
    return [
        replace(report, comparisons=tuple(replace(c, p_holm=next(adjusted)) for c in report.comparisons))
        for report in reports
    ]


def _named_apart(report: TaskReport, reports: Sequence[TaskReport]) -> TaskReport:
    """A report whose task has others, of other versions, is named ``TASK@VERSION``."""
    alone = sum(other.task == report.task for other in reports) == 1
    return report if alone else replace(report, task=f"{report.task}@{report.runs[0].version}")


def _task_report(
    task: str, runs: Sequence[TaskRun], options: ReportOptions, published: Sequence[PublishedRow]
) -> TaskReport:
    _check_same_questions(runs)
    declared = next((run.clusters for run in runs if run.clusters), ())  # runs from before a task declared its keys
    options = replace(options, clusters=declared if options.clustered else ())
    docs = {id_: sample["doc"] for run in runs for id_, sample in run.questions.items()}
    groups: dict[str, set[str]] = {}
    for id_, doc in docs.items():
        for key in (options.by, ALSO.get(options.by, "")):
            if doc.get(key) is not None:
                groups.setdefault(str(doc[key]), set()).add(id_)
    names = sorted(groups, key=lambda name: (ORDER.get(name, len(ORDER)), -len(groups[name]), name))
    methods = {run.model for run in runs}
    return TaskReport(
        task=task,
        by=options.by,
        sizes={name: len(groups[name]) for name in names},
        runs=tuple(run_report(run, {name: groups[name] for name in names}, options, runs) for run in runs),
        comparisons=tuple(_comparisons(runs, options)),
        published=tuple(
            row
            for row in published
            if row.task == task and row.ours in methods and row.counterpart in (options.metrics or METRICS)
        ),
        against=next((run.label for run in runs if run.label == options.against), ""),
        clusters=options.clusters,
    )


def _comparisons(runs: Sequence[TaskRun], options: ReportOptions) -> Iterable[Comparison]:
    base = [run for run in runs if run.label == options.against]
    pairs = (
        combinations(runs, 2) if options.against is None else product(base, (run for run in runs if run not in base))
    )
    for first, second in pairs:
        for metric in options.headline(first):
            difference = difference_of(second, first, metric, options.seed, options.labels)
            if difference is not None:
                yield Comparison(first.label, second.label, metric, difference)


def difference_of(
    ours: TaskRun,
    theirs: TaskRun,
    metric: str,
    seed: int = 0,
    labels: Callable[[TaskRun, Sequence[str]], Clusters] = lambda run, ids: (),
) -> Difference | None:
    """The paired difference of two runs on the questions that both have scores of; None if there are none.

    Args:
        labels: The clusters of some of a run's questions.
    """
    first, second = ours.scores.get(metric, {}), theirs.scores.get(metric, {})
    ids = [id_ for id_ in second if id_ in first]
    if not ids:
        return None
    return paired([first[i] for i in ids], [second[i] for i in ids], seed=seed, clusters=labels(theirs, ids))


def _check_same_questions(runs: Sequence[TaskRun]) -> None:
    first_seen: dict[str, tuple[TaskRun, dict[str, Any]]] = {}
    for run in runs:
        if run.version != runs[0].version:
            raise UserError(
                f"{run.task}: {runs[0].label} ran version {runs[0].version}, {run.label} version {run.version}. "
                "Their questions differ: give runs of one version, or show them apart (--apart)."
            )
        for id_, sample in run.questions.items():
            content = {key: sample["doc"].get(key) for key in ("query", "answers", "corpus")}
            other, before = first_seen.setdefault(id_, (run, content))
            if before != content:
                key = next(key for key in content if before[key] != content[key])
                raise UserError(
                    f"{run.task}, question {id_!r}: {other.label} and {run.label} were asked different things "
                    f"({key} {str(before[key])[:80]!r} in {other.path.parent}, {str(content[key])[:80]!r} in "
                    f"{run.path.parent}). Compare runs on the same data: leave one of the two out, or run it again."
                )
