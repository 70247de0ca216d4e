"""Writes the board as a static site: it works from a folder, from any web server, and as a static Space on the Hub.

Texts of submissions reach the pages through Jinja's escaping, or as data that scripts put in as text.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.leaderboards.board.content import SHOWN, Board, Row, TaskBoard
from lm_eval_rag.leaderboards.board.entries import Entry
from lm_eval_rag.leaderboards.submissions.answer_key import answer_key

SAMPLED = 50  # answers on the page of an entry
TEXT = 300  # characters of a passage or answer that is shown
SPACE = """---
title: lm-eval-rag leaderboard
emoji: 📚
colorFrom: blue
colorTo: green
sdk: static
pinned: false
---

Made by `lm-eval-rag board build`. Every score is computed from predictions.
"""


def write_site(board: Board, out: Path) -> list[Path]:
    """Write all files; the same board gives the same bytes.

    Raises:
        UserError: The folder holds something that is no site of ours.
    """
    if out.exists() and any(out.iterdir()) and not (out / "board.csv").is_file():
        raise UserError(f"{out} holds other files. Give --out a new folder, or that of an earlier site.")
    output_folder(out)
    pages = {
        "index.html": _render(
            "index.html.jinja", board=board, data=_script(index_data(board)), title="RAG leaderboard"
        ),
        "board.csv": _csv(board),
        "README.md": SPACE,
    }
    for entry in board.entries.values():
        pages[f"entries/{entry.slug}.html"] = _entry_page(board, entry)
        pages[f"data/{entry.slug}.js"] = f"boardData({_script(['entry', entry.slug, _answers(entry)])});\n"
    for task in board.tasks:
        pages[f"data/{task.task}.pairs.js"] = f"boardData({_script(['pairs', task.task, _pairs(task)])});\n"
        pages[f"data/{task.task}.questions.js"] = f"boardData({_script(['questions', task.task, _questions(task)])});\n"
    for old in (*out.glob("entries/*.html"), *out.glob("data/*.js")):
        old.unlink()  # of entries that are no longer there
    for name, text in pages.items():
        path = out / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [out / name for name in pages]


def index_data(board: Board) -> dict[str, Any]:
    """What the table's script needs; numbers in percent where they are shares."""
    return {
        "tasks": [
            {
                "task": task.task,
                "version": task.version,
                "data": task.data,
                "questions": task.questions,
                "metric": task.metric,
                "metrics": [[name, METRICS[name].higher_is_better] for name in task.metrics],
                "rows": [_row(board, row) for row in task.rows],
            }
            for task in board.tasks
        ],
        "groups": [
            {"group": name, "rows": [[board.entries[slug].card.name, slug, *_ends(one)] for slug, one in _best(rows)]}
            for name, rows in board.groups.items()
        ],
    }


def _row(board: Board, row: Row) -> dict[str, Any]:
    card = board.entries[row.slug].card if row.slug else None
    return {
        "name": row.name,
        "slug": row.slug,
        "kind": row.kind,
        "team": card.team if card else "",
        "method": card.method if card else "",
        "generator": (card.generator or "") if card else "",
        "parameters": card.parameters if card else None,
        "retriever": (card.retriever or "") if card else "",
        "scores": {name: _ends(one) for name, one in row.scores.items() if name in SHOWN},
        "rank": [row.standing.rank, row.standing.best, row.standing.worst] if row.standing else None,
        "cost": {name: round(value, 4) for name, value in row.cost.items()},
        "gains": {
            other: [*_ends(one.interval), _p(one.p)] for other, one in row.gains.items()
        },
        "flags": list(row.flags),
        "note": row.note,
    }  # fmt: skip


def _ends(one: Interval) -> list[float | None]:
    """Mean, low and high in percent."""
    return [None if value is None else round(100 * value, 2) for value in (one.mean, one.low, one.high)]


def _p(value: float) -> float:
    return float(f"{value:.2g}")


def _best(rows: Mapping[str, Interval]) -> list[tuple[str, Interval]]:
    return sorted(rows.items(), key=lambda item: (-item[1].mean, item[0]))


def _pairs(task: TaskBoard) -> list[list[Any]]:
    return [[pair.first, pair.second, *_ends(pair.difference.interval), _p(pair.p_holm)] for pair in task.pairs]


def _questions(task: TaskBoard) -> dict[str, list[Any]]:
    return {id: [doc["query"], list(doc["answers"])] for id, doc in answer_key(task.task).questions.items()}


def _answers(entry: Entry) -> dict[str, dict[str, list[Any]]]:
    """Task -> question -> [answer, em]."""
    return {
        task: {
            id: [one.answer[:TEXT], result.scores.get("em", {}).get(id)]
            for id, one in entry.predictions[task].items()
        }
        for task, result in entry.tasks.items()
    }  # fmt: skip


def _entry_page(board: Board, entry: Entry) -> str:
    rows = {task.task: (task, row) for task in board.tasks for row in task.rows if row.slug == entry.slug}
    samples = {task: list(_samples(entry, task)) for task in entry.tasks}
    return _render("entry.html.jinja", board=board, entry=entry, rows=rows, samples=samples, title=entry.card.name)


def _samples(entry: Entry, task: str) -> Iterable[dict[str, Any]]:
    """Half of the sample right and half wrong, as far as there are so many, drawn with a seed."""
    key, scores = answer_key(task), entry.tasks[task].scores.get("em", {})
    drawn = random.Random(0)
    right = [id for id, value in scores.items() if value]
    wrong = [id for id, value in scores.items() if not value]
    share = SAMPLED // 2
    chosen = [
        *drawn.sample(right, min(len(right), max(share, SAMPLED - len(wrong)))),
        *drawn.sample(wrong, min(len(wrong), max(share, SAMPLED - len(right)))),
    ]
    predictions = {id: entry.predictions[task][id] for id in chosen}
    shown = {
        id: one.model_copy(update={"retrieved": one.retrieved and one.retrieved[:5]}) for id, one in predictions.items()
    }
    passages = key.passages(shown)
    for id, one in predictions.items():
        doc = key.questions[id]
        yield {
            "id": id,
            "query": doc["query"],
            "golds": doc["answers"],
            "answer": one.answer[:TEXT],
            "abstained": one.abstained,
            "right": bool(scores[id]),
            "passages": [replace(passage, text=passage.text[:TEXT]) for passage in passages.get(id, ())],
            "rules": one.rules or (),
        }


def _csv(board: Board) -> str:
    """All rows as CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    metrics = sorted({name for task in board.tasks for name in task.metrics})
    writer.writerow(["task", "rank", "name", "kind", "team", "method", "generator", "retriever", *metrics])
    for task in board.tasks:
        for row in task.rows:
            card = board.entries[row.slug].card if row.slug else None
            about = [card.team, card.method, card.generator or "", card.retriever or ""] if card else [""] * 4
            numbers = [row.scores[name].mean if name in row.scores else "" for name in metrics]
            texts = [task.task, row.standing.rank if row.standing else "", row.name, row.kind, *about]
            writer.writerow([_cell(value) for value in texts] + numbers)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _script(value: Any) -> str:
    """JSON that cannot end a script or begin a comment in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _render(template: str, **values: Any) -> str:
    """A template, with style and script of the folder at hand."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    folder = files("lm_eval_rag.leaderboards.board")

    def source(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(source), trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(
        style=Markup(source("board.css")),
        script=Markup(source("board.js")),
        percent=_percent,
        number="{:,}".format,
    )
    if "data" in values:
        values["data"] = Markup(values["data"])
    return environment.get_template(template).render(**values)


def _percent(one: Interval, sign: bool = False) -> str:
    mean, low, high = (None if value is None else 100 * value for value in (one.mean, one.low, one.high))
    shown = "+.1f" if sign else ".1f"
    return f"{mean:{shown}}" + ("" if low is None else f" [{low:.1f}, {high:.1f}]")
