"""The content of a report: scores with intervals, slices, paired differences, costs, and published numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.report.abstention_scores import Abstention, Weights, abstention, weighted
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.report.stats import Difference, Interval, holm, interval, paired, percentile
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.harness.scoring.verdict import read_verdict

HEADLINE = ("em", "token_f1", "acc_lm", "crag_score", "recall@10")  # metrics of the slices and differences
SLICES = (  # keys of our tasks' documents that define slices; a task of the user's may have others
    *("slice", "popularity", "relation"),
    *("domain", "question_type", "static_or_dynamic", "split"),
)
ORDER = {  # of the slices' values; other values are sorted by size
    name: i for i, name in enumerate(("direct", "rule_required", "unreachable", "head", "torso", "tail"))
}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a run; a stock model records none.

    Args:
        prompt_tokens: Total number of prompt tokens.
        completion_tokens: Total number of generated tokens.
        seconds_p50: Median of the seconds per question (a batch's time divided by its size).
        seconds_p95: 95th percentile of the seconds per question.
        calls: Kind of call -> total number.
        dropped_passages: Total number of passages left out of prompts because they did not fit.
    """

    prompt_tokens: int
    completion_tokens: int
    seconds_p50: float
    seconds_p95: float
    calls: Mapping[str, int]
    dropped_passages: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run on one task.

    Args:
        run: Label of the run.
        path: The results file.
        version: Version of the task.
        questions: Number of questions.
        unscored: Question id -> why it has no score.
        scores: Metric -> mean with interval.
        slices: Value of the slice -> metric -> mean with interval.
        cost: Tokens and seconds.
        abstention: Abstention scores; None without CRAG's scores.
        unjudged: Question id -> why a judge failed on it.
        weighted: Metric -> weighted mean with interval; empty without weights.
    """

    run: str
    path: str
    version: str
    questions: int
    unscored: Mapping[str, str]
    scores: Mapping[str, Interval]
    slices: Mapping[str, Mapping[str, Interval]]
    cost: Cost | None
    abstention: Abstention | None = None
    unjudged: Mapping[str, str] = field(default_factory=dict)
    weighted: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``second`` minus ``first`` on the questions scored in both runs; ``p_holm`` corrects over the whole report."""

    first: str
    second: str
    metric: str
    difference: Difference
    p_holm: float = 1.0


@dataclass(frozen=True, slots=True)
class TaskReport:
    """All runs on one task.

    Args:
        by: Key that defines the slices.
        sizes: Value of the slice -> number of questions, in display order.
        published: The papers' rows for this task and these methods.
    """

    task: str
    by: str
    sizes: Mapping[str, int]
    runs: tuple[RunReport, ...]
    comparisons: tuple[Comparison, ...]
    published: tuple[PublishedRow, ...]


def build(
    runs: Sequence[TaskRun],
    by: str = "slice",
    published: Iterable[PublishedRow] = (),
    seed: int = 0,
    against: str | None = None,
    metrics: Sequence[str] = (),
    weights: Weights | None = None,
) -> list[TaskReport]:
    """One report per task, in the order of the runs.

    Args:
        by: Key that defines the slices.
        published: The papers' rows.
        seed: Seed of the bootstrap.
        against: Label of the run that the others are compared with; None compares all pairs. Fewer comparisons need a
            smaller correction.
        metrics: Metrics of the slices and differences; () for the default ones.
        weights: Weights of groups of questions, for weighted means.

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
    for metric in metrics:
        if metric not in known:
            raise unknown("metric", metric, known)
    tasks: dict[str, list[TaskRun]] = {}
    for run in runs:
        tasks.setdefault(run.task, []).append(run)
    rows = tuple(published)
    options = ReportOptions(by, seed, against, tuple(metrics), weights)
    reports = [_task_report(task, members, options, rows) for task, members in tasks.items()]
    adjusted = iter(holm([c.difference.p for report in reports for c in report.comparisons]))
    return [
        replace(report, comparisons=tuple(replace(c, p_holm=next(adjusted)) for c in report.comparisons))
        for report in reports
    ]


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The arguments of :func:`build`."""

    by: str
    seed: int
    against: str | None
    metrics: tuple[str, ...]
    weights: Weights | None = None

    def headline(self, run: TaskRun) -> list[str]:
        """The metrics of slices and differences; for a task that is not ours, its first metrics."""
        chosen = [name for name in self.metrics or HEADLINE if name in run.scores]
        return chosen or list(run.scores)[: len(HEADLINE)]


def _task_report(
    task: str, runs: Sequence[TaskRun], options: ReportOptions, published: Sequence[PublishedRow]
) -> TaskReport:
    _check_same_questions(runs)
    docs = {id_: sample["doc"] for run in runs for id_, sample in run.questions.items()}
    groups: dict[str, set[str]] = {}
    for id_, doc in docs.items():
        if doc.get(options.by) is not None:
            groups.setdefault(str(doc[options.by]), set()).add(id_)
    names = sorted(groups, key=lambda name: (ORDER.get(name, len(ORDER)), -len(groups[name]), name))
    methods = {run.model for run in runs}
    return TaskReport(
        task=task,
        by=options.by,
        sizes={name: len(groups[name]) for name in names},
        runs=tuple(_run_report(run, {name: groups[name] for name in names}, options) for run in runs),
        comparisons=tuple(_comparisons(runs, options)),
        published=tuple(r for r in published if r.task == task and r.ours in methods and r.counterpart),
    )


def _run_report(run: TaskRun, groups: Mapping[str, set[str]], options: ReportOptions) -> RunReport:
    known = [name for name in METRICS if name in run.scores]
    metrics = known + [name for name in run.scores if name not in METRICS]

    def means(names: Iterable[str], inside: Callable[[str], bool]) -> dict[str, Interval]:
        chosen = {name: [v for id_, v in run.scores.get(name, {}).items() if inside(id_)] for name in names}
        return {name: interval(values, seed=options.seed) for name, values in chosen.items() if values}

    return RunReport(
        run=run.label,
        path=str(run.path),
        version=run.version,
        questions=len(run.questions),
        unscored={id_: _why(sample) for id_, sample in run.questions.items() if not sample["metrics"]},
        scores=means(metrics, lambda _: True),
        slices={name: means(options.headline(run), ids.__contains__) for name, ids in groups.items()},
        cost=_cost(run),
        abstention=abstention(run, seed=options.seed),
        unjudged=_unjudged(run),
        weighted={name: weighted(run, name, options.weights, seed=options.seed) for name in options.headline(run)}
        if options.weights
        else {},
    )


def _unjudged(run: TaskRun) -> dict[str, str]:
    verdicts = {id_: read_verdict(sample["doc"]) for id_, sample in run.questions.items()}
    return {id_: verdict.why for id_, verdict in verdicts.items() if verdict is not None and verdict.correct is None}


def _why(sample: Mapping[str, Any]) -> str:
    return str((sample["doc"].get("_rag") or {}).get("failure") or "no reason recorded")


def _cost(run: TaskRun) -> Cost | None:
    records = [sample["doc"]["_rag"] for sample in run.questions.values() if sample["doc"].get("_rag")]
    if not records:
        return None
    seconds = [float(record.get("seconds", 0)) for record in records]
    kinds = sorted({kind for record in records for kind in record.get("calls", {})})

    def total(key: str) -> int:
        return sum(int(record.get(key, 0)) for record in records)

    return Cost(
        prompt_tokens=total("prompt_tokens"),
        completion_tokens=total("completion_tokens"),
        seconds_p50=percentile(seconds, 0.5),
        seconds_p95=percentile(seconds, 0.95),
        calls={kind: sum(record.get("calls", {}).get(kind, 0) for record in records) for kind in kinds},
        dropped_passages=total("dropped_passages"),
    )


def _comparisons(runs: Sequence[TaskRun], options: ReportOptions) -> Iterable[Comparison]:
    base = [run for run in runs if run.label == options.against]
    pairs = (
        combinations(runs, 2) if options.against is None else product(base, (run for run in runs if run not in base))
    )
    for first, second in pairs:
        for metric in options.headline(first):
            ours, theirs = second.scores.get(metric, {}), first.scores[metric]
            shared = [id_ for id_ in theirs if id_ in ours]
            if shared:
                difference = paired([ours[i] for i in shared], [theirs[i] for i in shared], seed=options.seed)
                yield Comparison(first.label, second.label, metric, difference)


def _check_same_questions(runs: Sequence[TaskRun]) -> None:
    first_seen: dict[str, tuple[str, Any]] = {}
    for run in runs:
        if run.version != runs[0].version:
            raise UserError(
                f"{run.task}: {runs[0].label} ran version {runs[0].version}, {run.label} version {run.version}. "
                "Compare runs of one version of a task."
            )
        for id_, sample in run.questions.items():
            content = {key: sample["doc"].get(key) for key in ("query", "answers", "corpus")}
            label, before = first_seen.setdefault(id_, (run.label, content))
            if before != content:
                raise UserError(
                    f"{run.task}, question {id_!r}: {label} and {run.label} were asked different things "
                    f"(corpus {before['corpus']!r} and {content['corpus']!r}). Compare runs on the same data."
                )
