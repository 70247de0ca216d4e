"""Tables of groups: means over their tasks, ranked as a task is; and the whole board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.leaderboards.board.content import (
    BEST_TRIVIAL,
    SHOWN,
    Board,
    Row,
    TaskBoard,
    in_order,
    published_rows,
    task_board,
)
from lm_eval_rag.leaderboards.board.copies import with_copies_flagged
from lm_eval_rag.leaderboards.board.entries import Entry, Refused
from lm_eval_rag.leaderboards.board.ranking import Scores, ranked
from lm_eval_rag.leaderboards.submissions.form import Claim

COSTS = ("calls", "tokens", "seconds", "cost")
GREY = ("trivial", "canary")
APART = ("published", "self-reported")  # kinds of rows without predictions


def board_of(
    entries: Sequence[Entry], refused: Sequence[Refused] = (), claims: Sequence[Claim] = (), seed: int = 0
) -> Board:
    """The board of some entries; the same entries give the same board.

    Args:
        refused: What is not on the board.
        claims: Scores without predictions, which are shown apart.
    """
    entries = with_copies_flagged(entries)
    published, tables, scores = published_rows(), dict[str, TaskBoard](), dict[str, Scores]()
    names = sorted({task for one in entries for task in one.tasks} | {task for one in claims for task in one.scores})
    for place, name in enumerate(names):
        tables[name], scores[name] = task_board(name, entries, published, claims, seed + place)
    groups = [
        _group(name, [tables[task] for task in members], [scores[task] for task in members])
        for name, members in group_members().items()
        if len(members) > 1
        and all(task in tables for task in members)
        and len({tables[task].metric for task in members}) == 1
    ]
    return Board({entry.slug: entry for entry in entries}, (*groups, *tables.values()), tuple(refused))


def _group(name: str, boards: Sequence[TaskBoard], scores: Sequence[Scores]) -> TaskBoard:
    """The table of one group. An entry that lacks a task has its other tasks' scores, and no mean and no rank."""
    metric, members = boards[0].metric, [board.task for board in boards]
    by_task = [
        {row.slug or row.name: row for row in board.rows if row.kind not in ("published", "self-reported")}
        for board in boards
    ]
    every = {id: [rows.get(id) for rows in by_task] for id in dict.fromkeys(id for rows in by_task for id in rows)}
    whole = {id: [row for row in own if row] for id, own in every.items() if None not in own}
    means = Scores.mean_of(scores)
    intervals = {id: _means([metric], own)[metric] for id, own in whole.items()}
    competing = [id for id, own in whole.items() if all(row.kind == "entry" for row in own)]
    placed, pairs = ranked(means.of_these(competing), METRICS[metric].higher_is_better)
    standings = {one.entry: one for one in placed}
    shown = [one for one in SHOWN if one != metric and all(one in board.metrics for board in boards)]
    best = max(
        (id for id, own in whole.items() if own[0].kind in GREY and not own[0].flags),
        key=lambda id: intervals[id].mean,
        default="",
    )
    rows = []
    for id, own in every.items():
        there = [row for row in own if row]
        row = replace(
            there[0],
            scores=({metric: intervals[id]} | _means(shown, whole[id]) if id in whole else {}) | _by_task(boards, own),
            standing=standings.get(id),
            cost=_cost(there) if id in whole else {},
            slices={},
            gains={BEST_TRIVIAL: means.differences(id, [best])[0]} if best and id in whole and id != best else {},
            flags=tuple(dict.fromkeys(flag for row in there for flag in row.flags)),
            cleared=" ".join(dict.fromkeys(row.cleared for row in there if row.cleared)),
            curve=(),
            note="" if id in whole else "lacks " + ", ".join(m for m, row in zip(members, own, strict=True) if not row),
        )
        rows.append(replace(row, gains={}) if row.kind == "canary" else row)
    return TaskBoard(
        name, ", ".join(dict.fromkeys(board.version for board in boards)), "", sum(board.questions for board in boards),
        metric, (metric, *shown, *members), tuple(in_order(rows, metric)), tuple(pairs), tuple(members),
    )  # fmt: skip


def _by_task(boards: Sequence[TaskBoard], own: Sequence[Row | None]) -> dict[str, Interval]:
    """Task -> its main score, of the tasks that the row has."""
    return {
        board.task: row.scores[board.metric]
        for board, row in zip(boards, own, strict=True)
        if row is not None and board.metric in row.scores
    }


def _means(metrics: Sequence[str], own: Sequence[Row]) -> dict[str, Interval]:
    """Means over tasks; tasks are independent, so the widths of their intervals add as squares do."""
    results = {}
    for metric in metrics:
        if all(metric in row.scores for row in own):
            found = [row.scores[metric] for row in own]
            mean, n = fmean(one.mean for one in found), sum(one.n for one in found)
            half = sqrt(sum(((one.high or one.mean) - (one.low or one.mean)) ** 2 for one in found)) / 2 / len(found)
            results[metric] = Interval(mean, mean - half if half else None, mean + half if half else None, n)
    return results


def _cost(own: Sequence[Row]) -> dict[str, float]:
    """Means over tasks, of what all of them declare."""
    return {name: fmean(row.cost[name] for row in own) for name in COSTS if all(name in row.cost for row in own)}


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
