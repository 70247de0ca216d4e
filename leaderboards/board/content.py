"""What the board shows: for each task its ranking, costs, gains over baselines, and rows that are not ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.report.published import PublishedRow, read_published
from lm_eval_rag.harness.report.stats import Difference, Interval, interval, paired
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.leaderboards.board.entries import Entry, Refused
from lm_eval_rag.leaderboards.board.ranking import Pair, Standing, overall, ranked
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey, answer_key, scorer_hash
from lm_eval_rag.leaderboards.submissions.form import Prediction

SHOWN = ("em", "token_f1", "recall@10", "acc_lm", "crag_score", "crag_hallucination", "crag_missing", "fever_score")
BASELINE = "standard_rag"  # the method with which others of the same generator are compared
SLICES = (
    *("slice", "change", "rule_confidence", "subject_documents", "seen"),
    *("popularity", "question_type", "domain", "type"),
)
SMALL_SLICE = 10  # questions below which a slice is not shown
CANARIES = ("abstains always", "most common gold answer")  # rows of no system, to read the others by


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a task's table.

    Args:
        name: Of the entry, the canary, or the published method.
        slug: Of an entry; "" for rows that are none.
        kind: ``entry``, ``flagged``, ``own corpus``, ``canary`` or ``published``; only entries are ranked.
        scores: Metric -> mean with interval.
        slices: Value of a slice -> mean of the task's main metric with interval.
        gains: What it is compared with -> paired difference of the main metric.
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
    note: str = ""


@dataclass(frozen=True, slots=True)
class TaskBoard:
    """The table of one task.

    Args:
        metric: By which entries are ranked.
        metrics: That are shown.
        pairs: Every two entries of the ranking.
    """

    task: str
    version: str
    data: str
    questions: int
    metric: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...] = ()


@dataclass(frozen=True, slots=True)
class Board:
    """All tables.

    Args:
        groups: Group -> entry -> mean over its tasks with interval, for entries that have all of them.
        refused: What is not on the board, and why.
    """

    entries: Mapping[str, Entry]
    tasks: tuple[TaskBoard, ...]
    groups: Mapping[str, Mapping[str, Interval]]
    refused: tuple[Refused, ...]
    scorer: str = field(default_factory=scorer_hash)


def board_of(entries: Sequence[Entry], refused: Sequence[Refused] = (), seed: int = 0) -> Board:
    """The board of some entries; the same entries give the same board."""
    published = read_published(Path(str(files("lm_eval_rag.leaderboards") / "published")))
    names = sorted({task for entry in entries for task in entry.tasks})
    tasks = tuple(_task(name, entries, published, seed) for name in names)
    return Board({entry.slug: entry for entry in entries}, tasks, _groups(entries, tasks, seed), tuple(refused))


def main_metric(key: AnswerKey) -> str:
    """The metric by which a task is ranked."""
    return key.main_metric


def _task(name: str, entries: Sequence[Entry], published: Iterable[PublishedRow], seed: int) -> TaskBoard:
    key = answer_key(name)
    metric = main_metric(key)
    own = [entry for entry in entries if name in entry.tasks]
    values = {entry.slug: entry.tasks[name].scores[metric] for entry in own}
    kinds = {entry.slug: _kind(entry, name) for entry in own}
    ranked_ones = {entry.slug: values[entry.slug] for entry in own if kinds[entry.slug] == "entry"}
    placed, pairs = ranked(ranked_ones, METRICS[metric].higher_is_better, seed)
    standings = {one.entry: one for one in placed}
    canaries = {row: key.scores(predictions, {}) for row, predictions in canary_predictions(key).items()}
    best_canary = max(canaries, key=lambda row: sum(canaries[row][metric].values()))
    rows = []
    for entry in own:
        result = entry.tasks[name]
        others = {best_canary: canaries[best_canary][metric], **_same_generator(entry, own, values)}
        rows.append(
            Row(
                entry.card.name,
                entry.slug,
                kinds[entry.slug],
                _intervals(result.scores, seed),
                standings.get(entry.slug),
                result.cost,
                _slices(key, result.scores[metric], seed),
                {other: _difference(result.scores[metric], theirs, seed) for other, theirs in others.items()},
                result.flags,
            )
        )
    rows.sort(key=lambda row: (row.standing is None, -row.scores[metric].mean, row.name))
    rows += [Row(row, "", "canary", _intervals(scores, seed)) for row, scores in canaries.items()]
    rows += _published_rows(name, published)
    shown = tuple(one for one in SHOWN if any(one in row.scores for row in rows))
    return TaskBoard(name, key.version, key.data, len(key.questions), metric, shown, tuple(rows), tuple(pairs))


def _kind(entry: Entry, task: str) -> str:
    """The kind of an entry's row: what is flagged or was answered over an own corpus is shown apart."""
    return "flagged" if entry.tasks[task].flags else "own corpus" if entry.is_foreign(task) else "entry"


def canary_predictions(key: AnswerKey) -> dict[str, dict[str, Prediction]]:
    """Answers of no system: one that always abstains, and one that always gives the most common gold answer.

    The second looks at the golds, so it is the best that any constant answer can reach.
    """
    golds = Counter(doc["answers"][0] for doc in key.questions.values() if doc["answers"])
    common = min(golds, key=lambda gold: (-golds[gold], gold)) if golds else ""
    return {
        CANARIES[0]: {id: Prediction(id=id, answer="I don't know", abstained=True) for id in key.questions},
        CANARIES[1]: {id: Prediction(id=id, answer=common) for id in key.questions},
    }


def _same_generator(
    entry: Entry, own: Sequence[Entry], values: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """The board's ``standard_rag`` with the entry's generator, if there is one and it is another entry."""
    return {
        f"{BASELINE}, same generator": values[other.slug]
        for other in own
        if other.card.method == BASELINE
        and other.slug != entry.slug
        and (other.card.generator, other.card.revision) == (entry.card.generator, entry.card.revision)
    }


def _difference(ours: Mapping[str, float], theirs: Mapping[str, float], seed: int) -> Difference:
    ids = sorted(ours)
    return paired([ours[id] for id in ids], [theirs[id] for id in ids], seed=seed)


def _intervals(scores: Mapping[str, Mapping[str, float]], seed: int) -> dict[str, Interval]:
    """All scores that are shares, those of the table first."""
    names = [*(name for name in SHOWN if scores.get(name)), *(name for name in scores if name not in SHOWN)]
    shares = [name for name in names if METRICS[name].unit == "share" and scores[name]]
    return {name: interval(list(scores[name].values()), seed=seed) for name in shares}


def _slices(key: AnswerKey, values: Mapping[str, float], seed: int) -> dict[str, Interval]:
    """The main metric by the values of the task's slices."""
    grouped: dict[str, list[float]] = {}
    for id, value in values.items():
        for by in SLICES:
            if key.questions[id].get(by):
                grouped.setdefault(f"{by}: {key.questions[id][by]}", []).append(value)
    return {name: interval(ones, seed=seed) for name, ones in sorted(grouped.items()) if len(ones) >= SMALL_SLICE}


def _published_rows(task: str, published: Iterable[PublishedRow]) -> list[Row]:
    """The papers' rows for this task, by method and generator: not verified, not ranked."""
    rows: dict[str, dict[str, Interval]] = {}
    for row in published:
        metric = row.counterpart
        if row.task == task and metric in SHOWN and row.table.startswith("table"):
            parts = [row.paper, row.method, row.generator, row.retriever if row.retriever not in ("", "None") else ""]
            name = ", ".join(filter(None, [*parts, row.note]))
            rows.setdefault(name, {}).setdefault(metric, Interval(row.value / 100, None, None, 0))
    return [Row(name, "", "published", scores, note="published, not verified") for name, scores in rows.items()]


def _groups(entries: Sequence[Entry], tasks: Sequence[TaskBoard], seed: int) -> dict[str, dict[str, Interval]]:
    """Means over the tasks of each group that are on the board, where there is more than one."""
    metric = {task.task: task.metric for task in tasks}
    groups: dict[str, dict[str, Interval]] = {}
    for name, members in group_members().items():
        if len(members) > 1 and all(task in metric for task in members):
            scored: list[Mapping[str, Mapping[str, float]]] = [
                {
                    entry.slug: entry.tasks[task].scores[metric[task]]
                    for entry in entries
                    if task in entry.tasks and _kind(entry, task) == "entry"
                }
                for task in members
            ]
            groups[name] = overall(scored, seed)
    return {name: rows for name, rows in groups.items() if rows}


def group_members() -> dict[str, list[str]]:
    """The groups of our tasks, by their YAML files."""
    import yaml  # type: ignore[import-untyped]

    groups: dict[str, list[str]] = {}
    for path in sorted(Path(str(files("lm_eval_rag.tasks"))).rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if text.startswith("group:"):
            content: dict[str, Any] = yaml.safe_load(text)
            groups[content["group"]] = [task for task in content["task"] if isinstance(task, str)]
    return groups
