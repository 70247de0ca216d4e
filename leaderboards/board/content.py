"""What the board shows: for each task its ranking, costs, gains over baselines, and rows that are not ranked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import numpy as np

from lm_eval_rag.harness.report.cluster_keys import cluster_keys, cluster_labels
from lm_eval_rag.harness.report.published import PublishedRow, read_published
from lm_eval_rag.harness.report.stats import Difference, Interval
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.leaderboards.board.canaries import canary_predictions
from lm_eval_rag.leaderboards.board.curves import Point, risk_coverage
from lm_eval_rag.leaderboards.board.entries import Entry, Refused
from lm_eval_rag.leaderboards.board.families import TRIVIAL
from lm_eval_rag.leaderboards.board.gains import standard_rag_of
from lm_eval_rag.leaderboards.board.ranking import Pair, Scores, Standing, ranked
from lm_eval_rag.leaderboards.board.resampling import Floats, Resamples
from lm_eval_rag.leaderboards.board.slices import slices_of
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey, answer_key, scorer_hash
from lm_eval_rag.leaderboards.submissions.form import Claim
from lm_eval_rag.leaderboards.submissions.suspicions import suspicions

SHOWN = ("em", "token_f1", "recall@10", "acc_lm", "crag_score", "crag_hallucination", "crag_missing", "fever_score")
BEST_TRIVIAL = "best trivial baseline"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a task's table.

    Args:
        name: Of the entry, the canary, or the published method.
        slug: Of an entry; "" for rows that are none.
        kind: ``entry``, ``trivial``, ``flagged``, ``own corpus``, ``self-reported``, ``canary`` or ``published``; only
            entries are ranked.
        scores: Metric -> mean with interval.
        slices: Value of a slice -> mean of the task's main metric with interval.
        gains: What it is compared with -> paired difference of the main metric.
        curve: Risk and coverage; () where the scores are lacking.
        claim: Where scores are self-reported, without predictions.
        flags: What keeps the row from being ranked.
        cleared: Flags that a maintainer cleared, and the record of it.
    """

    name: str
    slug: str
    kind: str
    scores: Mapping[str, Interval]
    standing: Standing | None = None
    cost: Mapping[str, float] = field(default_factory=dict)
    slices: Mapping[str, Interval] = field(default_factory=dict)
    gains: Mapping[str, Difference] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    cleared: str = ""
    curve: tuple[Point, ...] = ()
    note: str = ""
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class TaskBoard:
    """The table of one task.

    Args:
        metric: By which entries are ranked.
        metrics: That are shown.
        pairs: Every two entries of the ranking.
        members: The tasks of a group, whose rows are means over them; () for a task.
    """

    task: str
    version: str
    data: str
    questions: int
    metric: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...] = ()
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Board:
    """All tables: of groups, then of tasks.

    Args:
        refused: What is not on the board, and why.
    """

    entries: Mapping[str, Entry]
    tasks: tuple[TaskBoard, ...]
    refused: tuple[Refused, ...]
    scorer: str = field(default_factory=scorer_hash)


def clusters_of(key: AnswerKey) -> list[list[Hashable]]:
    """The labels of the questions by each key of clusters that the task declares."""
    keys = cluster_keys(key.task.config.metadata)
    return cluster_labels(key.questions.values(), keys)


def kind_of(entry: Entry, task: str) -> str:
    """The kind of an entry's row: what is flagged or was answered over a corpus of its own is shown apart."""
    if entry.waits(task):
        return "flagged"
    return "own corpus" if entry.is_foreign(task) else "trivial" if entry.family == TRIVIAL else "entry"


def task_board(
    name: str, entries: Sequence[Entry], published: Sequence[PublishedRow], claims: Sequence[Claim], seed: int
) -> tuple[TaskBoard, Scores]:
    """The table of one task; and the scores by its main metric of all entries and canaries, for its groups."""
    key = answer_key(name)
    metric, clusters = key.main_metric, clusters_of(key)
    own = [entry for entry in entries if name in entry.tasks]
    canaries, flags = canary_scores(key)
    resamples = Resamples(len(key.questions), clusters, seed=seed)
    values = {entry.slug: entry.tasks[name].scores for entry in own} | canaries
    labels = [key.tolist() for key in resamples.keys] if clusters else []
    scores = Scores.of({row: columns[metric] for row, columns in values.items()}, labels)
    kinds = {entry.slug: kind_of(entry, name) for entry in own}
    placed, pairs = ranked(
        scores.of_these([slug for slug, kind in kinds.items() if kind == "entry"]), METRICS[metric].higher_is_better
    )
    standings = {one.entry: one for one in placed}
    means, slices = intervals_of(values, resamples), slices_of(key, values, metric, resamples)
    trivial = [slug for slug, kind in kinds.items() if kind == "trivial"]
    gains = gains_of(scores, own, name, trivial + [row for row in canaries if not flags[row]])
    rows = [
        Row(
            entry.card.name,
            entry.slug,
            kinds[entry.slug],
            means[entry.slug],
            standings.get(entry.slug),
            entry.tasks[name].cost,
            slices[entry.slug],
            gains[entry.slug],
            entry.tasks[name].flags if entry.waits(name) else (),
            _clearance(entry, name),
            risk_coverage(entry.tasks[name]),
        )
        for entry in own
    ]
    rows += [
        Row(row, "", "canary", means[row], slices=slices[row], flags=flags[row], note="no system") for row in canaries
    ]
    rows = in_order(rows, metric) + _claimed_rows(name, claims) + _published_rows(name, published)
    shown = tuple(one for one in SHOWN if any(one in row.scores for row in rows))
    board = TaskBoard(name, key.version, key.data, len(key.questions), metric, shown, tuple(rows), tuple(pairs))
    return board, scores


def _clearance(entry: Entry, task: str) -> str:
    """The flags of a task that a maintainer cleared, and the record of it."""
    flags = entry.tasks[task].flags
    return " ".join((*flags, entry.cleared.note())) if flags and entry.cleared else ""


def canary_scores(key: AnswerKey) -> tuple[dict[str, dict[str, Floats]], dict[str, tuple[str, ...]]]:
    """Row -> metric -> scores in the order of the questions; and its flags."""
    scores, flags = {}, {}
    for row, predictions in canary_predictions(key).items():
        values = key.scores(predictions, {})
        flags[row] = tuple(suspicions(key, predictions, values))
        scores[row] = {
            metric: np.array([by_id.get(id, np.nan) for id in key.questions]) for metric, by_id in values.items()
        }
    return scores, flags


def intervals_of(values: Mapping[str, Mapping[str, Floats]], resamples: Resamples) -> dict[str, dict[str, Interval]]:
    """Row -> metric -> mean with interval, of the metrics that are shares, those of the table first."""
    known = {metric for columns in values.values() for metric in columns if METRICS[metric].unit == "share"}
    results: dict[str, dict[str, Interval]] = {row: {} for row in values}
    for metric in [*(one for one in SHOWN if one in known), *sorted(known - set(SHOWN))]:
        rows = [row for row, columns in values.items() if not np.isnan(columns.get(metric, np.nan)).all()]
        if rows:
            found = resamples.intervals(np.column_stack([values[row][metric] for row in rows]))
            for row, interval in zip(rows, found, strict=True):
                results[row][metric] = interval
    return results


def gains_of(
    scores: Scores, own: Sequence[Entry], task: str, trivial: Sequence[str]
) -> dict[str, dict[str, Difference]]:
    """Entry -> what it is compared with -> the paired difference: the best row that is no system, and standard_rag."""
    best = max(trivial, key=lambda row: scores.averages[row], default="")
    gains = {}
    for entry in own:
        others = {BEST_TRIVIAL: best} if best and best != entry.slug else {}
        others |= standard_rag_of(entry, own, task)
        gains[entry.slug] = dict(zip(others, scores.differences(entry.slug, list(others.values())), strict=True))
    return gains  # fmt: skip


def in_order(rows: Sequence[Row], metric: str) -> list[Row]:
    """Trivial baselines; ranked rows and canaries by score; then rows that wait or are apart."""

    def place(row: Row) -> tuple[int, float, str]:
        part = 0 if row.kind == "trivial" else 3 if row.kind == "own corpus" else 2 if row.flags else 1
        mean = row.scores[metric].mean if metric in row.scores else float("-inf")
        return part, -mean if METRICS[metric].higher_is_better else mean, row.name

    return sorted(rows, key=place)


def _claimed_rows(task: str, claims: Sequence[Claim]) -> list[Row]:
    """Scores that somebody reports without predictions."""
    return [
        Row(
            claim.name,
            "",
            "self-reported",
            {name: Interval(value, None, None, 0) for name, value in claim.scores[task].items() if name in METRICS},
            claim=claim,
        )
        for claim in claims
        if task in claim.scores
    ]


def _published_rows(task: str, published: Sequence[PublishedRow]) -> list[Row]:
    """The papers' rows for this task, by method and generator: not verified, not ranked."""
    rows: dict[str, dict[str, Interval]] = {}
    for row in published:
        metric = row.counterpart
        if row.task == task and metric in SHOWN and row.table.startswith("table"):
            parts = [row.paper, row.method, row.generator, row.retriever if row.retriever not in ("", "None") else ""]
            name = ", ".join(filter(None, [*parts, row.note]))
            rows.setdefault(name, {}).setdefault(metric, Interval(row.value / 100, None, None, 0))
    return [Row(name, "", "published", scores, note="published, not verified") for name, scores in rows.items()]


def published_rows() -> list[PublishedRow]:
    """All published numbers of the package."""
    return list(read_published(Path(str(files("lm_eval_rag.leaderboards") / "published"))))
