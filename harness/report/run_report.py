"""The report of one run: means with intervals, slices, cost, abstention, and what identifies the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lm_eval_rag.harness.report.abstention_scores import Abstention, Weights, abstention, weighted
from lm_eval_rag.harness.report.cluster_keys import Keys, cluster_labels
from lm_eval_rag.harness.report.clusters import Clusters
from lm_eval_rag.harness.report.report_parts import Cost, Prepared, RunReport
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.report.stats import Interval, interval, percentile
from lm_eval_rag.harness.report.trivial_baselines import TRIVIAL_BASELINES
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.harness.scoring.verdict import REFUSAL, RULES, Verdict, read_verdict

# metrics of the slices and differences, for a task that declares none
BLANK = "blank answer"
HEADLINE = ("em", "token_f1", "acc_lm", "crag_score", "recall@10")


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The arguments of :func:`build`, and the keys by which a task's questions are clustered."""

    by: str
    seed: int
    against: str | None
    metrics: tuple[str, ...]
    weights: Weights | None = None
    clustered: bool = True
    clusters: Keys = ()

    def labels(self, run: TaskRun, ids: Iterable[str]) -> Clusters:
        """The clusters of some of a run's questions."""
        return cluster_labels([run.questions[id_]["doc"] for id_ in ids], self.clusters)

    def headline(self, run: TaskRun) -> list[str]:
        """The metrics of slices and differences: those asked for, else those that the task declares.

        For a task that is not ours, its first metrics.
        """
        chosen = [name for name in self.metrics or run.headline or HEADLINE if name in run.scores]
        return chosen if chosen or self.metrics else list(run.scores)[: len(HEADLINE)]

    def shown(self, run: TaskRun) -> list[str]:
        """The metrics of the score tables: those asked for, else all."""
        known = [name for name in METRICS if name in run.scores]
        return self.headline(run) if self.metrics else known + [name for name in run.scores if name not in METRICS]


def run_report(
    run: TaskRun, groups: Mapping[str, set[str]], options: ReportOptions, others: Sequence[TaskRun]
) -> RunReport:
    """The report of one run.

    Args:
        groups: Value of the slice -> ids of its questions.
        others: All runs of the task, for its curve.
    """

    def means(names: Iterable[str], inside: Callable[[str], bool]) -> dict[str, Interval]:
        chosen = {name: {i: v for i, v in run.scores.get(name, {}).items() if inside(i)} for name in names}
        return {
            name: interval(list(values.values()), seed=options.seed, clusters=options.labels(run, values))
            for name, values in chosen.items()
            if values
        }

    return RunReport(
        run=run.label,
        path=str(run.path),
        version=run.version,
        questions=len(run.questions),
        unscored={id_: _why(sample) for id_, sample in run.questions.items() if _is_unscored(sample)},
        scores=means(options.shown(run), lambda _: True),
        slices={name: means(options.headline(run), ids.__contains__) for name, ids in groups.items()},
        cost=_cost(run),
        abstention=_abstention(run, options),
        unjudged=_unjudged(run),
        rejected=_rejected(run),
        refused=_refused(run),
        weighted={
            name: weighted(run, name, options.weights, seed=options.seed, keys=options.clusters)
            for name in options.headline(run)
        }
        if options.weights
        else {},
        headline=tuple(options.headline(run)),
        curve=curve_place(run, others),
        method=_method(run),
        date=run.date,
        versions=run.versions,
        trivial=run.model in TRIVIAL_BASELINES,
        part=_part(run),
        prepared=_prepared(run),
        noted=_noted(run),
    )


def curve_place(run: TaskRun, others: Sequence[TaskRun]) -> float | None:
    """The run's ``k`` if other runs of the same method, with otherwise the same arguments, have another ``k``."""
    alike = {other.parameters["k"] for other in others if "k" in other.parameters and _method(other) == _method(run)}
    return float(run.parameters["k"]) if len(alike) > 1 and "k" in run.parameters else None


def _noted(run: TaskRun) -> dict[str, int]:
    """How many answers have each note, such as ``answer unparsed``; a blank one that says nothing is one of its own."""
    counts = Counter[str]()
    for sample in run.questions.values():
        record = sample["doc"].get("_rag") or {}
        notes = [str(note) for note in record.get("notes") or ()]
        blank = not notes and not record.get("failure") and not str(record.get("answer", "-")).strip()
        counts.update({*notes, *([BLANK] if blank else [])})
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _part(run: TaskRun) -> tuple[int, int] | None:
    of: int = run.results["n-samples"][run.task].get("original", 0)
    return (run.asked, of) if run.asked < of else None


def _method(run: TaskRun) -> str:
    """The model and its arguments without ``k``."""
    telling = {key: value for key, value in run.arguments.items() if key != "k"}
    return " ".join([run.model, *(f"{key}={value}" for key, value in sorted(telling.items()))])


def _abstention(run: TaskRun, options: ReportOptions) -> Abstention | None:
    """The abstention scores that were asked for; None if the run has none of them."""
    own = abstention(run, seed=options.seed, keys=options.clusters)
    if own is None or not options.metrics:
        return own
    scores = {name: own.scores[name] for name in options.metrics if name in own.scores}
    return replace(own, scores=scores) if scores else None


def _verdicts(run: TaskRun) -> dict[str, Verdict]:
    found = {id_: read_verdict(sample["doc"]) for id_, sample in run.questions.items()}
    return {id_: verdict for id_, verdict in found.items() if verdict is not None}


def _unjudged(run: TaskRun) -> dict[str, str]:
    return {id_: verdict.why for id_, verdict in _verdicts(run).items() if verdict.correct is None}


def _rejected(run: TaskRun) -> int:
    """Answers that the judge without a model, as the only one, called wrong."""
    return sum(one.judges == (RULES,) and one.said == (0.0,) and not one.missing for one in _verdicts(run).values())


def _refused(run: TaskRun) -> int:
    """Answers that count as missing although they do not say "I don't know"."""
    return sum(one.rule == REFUSAL for one in _verdicts(run).values())


def _is_unscored(sample: Mapping[str, Any]) -> bool:
    """Whether a question has no score for want of an answer; one that was answered but has no gold is no failure."""
    own = sample["doc"].get("_rag")
    answered = own is not None and not own.get("failure") and not sample["doc"].get("answers")
    return not sample["metrics"] and not answered


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
        dollars=_dollars(records),
    )


def _dollars(records: Sequence[Mapping[str, Any]]) -> float | None:
    known = [float(record["cost"]) for record in records if record.get("cost") is not None]
    return sum(known) if known else None


def _prepared(run: TaskRun) -> tuple[Prepared, ...]:
    accounts: Mapping[str, Mapping[str, Any]] = (run.results["config"].get("rag") or {}).get("preparations") or {}
    return tuple(
        Prepared(
            name,
            calls=int(account.get("calls", 0)),
            prompt_tokens=int(account.get("prompt_tokens", 0)),
            completion_tokens=int(account.get("completion_tokens", 0)),
            dollars=account.get("cost"),
        )
        for name, account in accounts.items()
    )
