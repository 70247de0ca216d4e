"""The page of an entry, and its sampled answers as runs for the viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.view.view_page import Notice, page_of
from lm_eval_rag.leaderboards.board.content import Board
from lm_eval_rag.leaderboards.board.entries import Entry
from lm_eval_rag.leaderboards.board.page_data import TEXT, golds_of
from lm_eval_rag.leaderboards.submissions.answer_key import answer_key, record_of

PASSAGES = 10  # of an answer that are shown
LONG = 700  # characters of a passage that are shown


def entry_values(board: Board, entry: Entry) -> dict[str, Any]:
    """What the template of the page needs."""
    rows = {task.task: (task, row) for task in board.tasks for row in task.rows if row.slug == entry.slug}
    samples = {task: _lines(entry, task) for task in entry.tasks}
    return {"entry": entry, "rows": rows, "samples": samples, "title": entry.card.name}


def _lines(entry: Entry, task: str) -> list[dict[str, Any]]:
    key, result = answer_key(task), entry.tasks[task]
    right = dict(zip(key.questions, result.scores.get("em", ()), strict=False))
    return [
        {
            "id": id,
            "query": key.questions[id]["query"],
            "golds": golds_of(key.questions[id]["answers"]),
            "answer": one.answer[:TEXT],
            "abstained": one.abstained,
            "right": bool(right.get(id, 0)),
        }
        for id, one in result.sample.items()
    ]


def answers_page(entry: Entry) -> str:
    """The sampled answers in the viewer: questions, golds, answers, scores, passages and rules."""
    notice = Notice(
        entry.card.name,
        "A sample of its answers, half of them right and half wrong as far as there are so many, so their mean is not "
        "its score.",
        f"{entry.slug}.html",
    )
    return page_of([sample_run(entry, task) for task in entry.tasks], notice=notice)


def sample_run(entry: Entry, task: str) -> TaskRun:
    """The sample of one task as a run of lm_eval."""
    key, result = answer_key(task), entry.tasks[task]
    shown = {
        id: one.model_copy(update={"retrieved": one.retrieved and one.retrieved[:PASSAGES]})
        for id, one in result.sample.items()
    }
    passages, places = key.passages(shown), {id: place for place, id in enumerate(key.questions)}
    samples = []
    for id, one in shown.items():
        scores = {name: float(values[places[id]]) for name, values in result.scores.items()}
        record = record_of(one, passages.get(id))
        for passage in record["passages"] or ():
            passage["text"] = passage["text"][:LONG]
        costs = {name: getattr(one, name) for name in ("prompt_tokens", "completion_tokens", "seconds", "cost")}
        samples.append(
            {
                "doc_id": places[id],
                "doc": {**key.questions[id], "_rag": record | {name: v for name, v in costs.items() if v is not None}},
                "filter": "none",
                "metrics": [name for name, value in scores.items() if value == value],
                "filtered_resps": [one.answer],
                **{name: value for name, value in scores.items() if value == value},
            }
        )
    results = {"results": {task: {}}, "configs": {task: {}}, "config": {"model": entry.card.method}}
    return TaskRun(entry.card.name, task, Path(entry.path.name), results, tuple(samples), len(samples))
