"""The data of the pages, as scripts that also work from a file address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.leaderboards.board.content import Board, Row, TaskBoard
from lm_eval_rag.leaderboards.board.entries import Entry
from lm_eval_rag.leaderboards.board.families import family_of
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey, answer_key
from lm_eval_rag.leaderboards.submissions.tiers import SELF_REPORTED

TEXT = 300  # characters of an answer that is shown
COSTS = ("tokens", "seconds", "cost")
LABELS = {"crag_hallucination": "hallucination", "crag_missing": "abstention"}


def index_data(board: Board) -> dict[str, Any]:
    """What the first screen needs: all tasks, and the rows of the first."""
    return {
        "tasks": [about_task(task) for task in board.tasks],
        "rows": rows_of(board, board.tasks[0]) if board.tasks else [],
    }


def about_task(task: TaskBoard) -> dict[str, Any]:
    """What is said of a task beside its rows. Metrics are [key, label, whether higher is better]."""
    slices = dict.fromkeys(name for row in task.rows for name in row.slices)
    return {
        "task": task.task,
        "version": task.version,
        "data": task.data,
        "questions": task.questions,
        "metric": task.metric,
        "members": list(task.members),
        "metrics": [[name, LABELS.get(name, name), name not in METRICS or METRICS[name].higher_is_better]
                    for name in task.metrics],
        "slices": list(slices),
    }  # fmt: skip


def rows_of(board: Board, task: TaskBoard) -> list[dict[str, Any]]:
    """The rows of a table; scores, slices and costs as lists in the order of the task's, shares in percent."""
    slices = about_task(task)["slices"]
    return [_row(board, task, row, slices) for row in task.rows]


def _row(board: Board, task: TaskBoard, row: Row, slices: list[str]) -> dict[str, Any]:
    entry = board.entries[row.slug] if row.slug else None
    card = entry.card if entry else row.claim
    about = {
        "name": row.name,
        "slug": row.slug,
        "kind": row.kind,
        "team": card.team if card else "",
        "method": card.method if card else "",
        "family": family_of(card.method) if card else "",
        "generator": (card.generator or "") if card else "",
        "parameters": card.parameters if card else None,
        "retriever": (entry.card.retriever or "") if entry else "",
        "tier": entry.tier if entry else SELF_REPORTED if row.claim else "",
        "source": row.claim.source if row.claim else "",
        "scores": [ends(row.scores[name]) if name in row.scores else None for name in task.metrics],
        "rank": [row.standing.rank, row.standing.best, row.standing.worst] if row.standing else None,
        "cost": [short(row.cost[name]) if name in row.cost else None for name in COSTS],
        "gains": [[other, *ends(one.interval), short(one.p, 2)] for other, one in row.gains.items()],
        "slices": [round(100 * row.slices[name].mean, 1) if name in row.slices else None for name in slices],
        "curve": [[round(100 * share, 2) for share in point] for point in row.curve],
        "flags": list(row.flags),
        "cleared": row.cleared,
        "note": row.note,
    }
    return {name: value for name, value in about.items() if value not in ("", None, [])}


def comparison_data(board: Board, task: TaskBoard) -> Iterator[tuple[str, str]]:
    """(file, script): of a task its questions, and of each of its entries its answers and its pairs of the ranking."""
    key = None if task.members else answer_key(task.task)
    if key is not None:
        yield f"data/{task.task}.questions.js", script(["questions", task.task, _questions(key)])
    pairs: dict[str, dict[str, list[Any]]] = {}
    for one in task.pairs:
        pairs.setdefault(one.first, {})[one.second] = [*ends(one.difference.interval), short(one.p_holm, 2)]
    for row in task.rows:
        if row.slug:
            name = f"{row.slug}.{task.task}"
            value = {"pairs": pairs.get(row.slug, {})}
            value |= _answers(board.entries[row.slug], task.task) if key is not None else {}
            yield f"data/{name}.js", script(["entry", name, value])


def _questions(key: AnswerKey) -> list[list[Any]]:
    """[id, question, golds] in the order of the task."""
    return [[id, doc["query"], golds_of(doc["answers"])] for id, doc in key.questions.items()]


def golds_of(answers: Any) -> list[str]:
    """All accepted answers of a question, whose aliases may be in lists of their own."""
    return [text for one in answers for text in ([one] if isinstance(one, str) else one)]


def _answers(entry: Entry, task: str) -> dict[str, Any]:
    """Answers, and whether each is right: 1, 0, or - where there is no score."""
    result = entry.tasks[task]
    right = result.scores.get("em")
    marks = ["-"] * len(result.answers) if right is None else ["-" if np.isnan(one) else str(int(one)) for one in right]
    return {"answers": [one[:TEXT] for one in result.answers], "right": "".join(marks)}


def ends(one: Interval) -> list[float]:
    """Mean, low and high in percent; the mean alone if there is no interval."""
    known = (one.mean,) if one.low is None or one.high is None else (one.mean, one.low, one.high)
    return [round(100 * value, 2) + 0.0 for value in known]


def short(value: float, digits: int = 4) -> float:
    """A number with so many significant digits."""
    return float(f"{value:.{digits}g}")


def script(value: Any) -> str:
    """A script that hands a value to the page."""
    return f"boardData({in_script(value)});\n"


def in_script(value: Any) -> str:
    """JSON that cannot end a script or begin a comment in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
