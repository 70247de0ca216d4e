"""Writes the board as a static site: it works from a folder, from any web server, and as a static Space on the Hub.

Texts of submissions reach the pages through Jinja's escaping, or as data that scripts put in as text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.report.cells import cell, p_value, signed
from lm_eval_rag.leaderboards.board.content import Board
from lm_eval_rag.leaderboards.board.entry_page import answers_page, entry_values
from lm_eval_rag.leaderboards.board.families import family_of
from lm_eval_rag.leaderboards.board.history import Version
from lm_eval_rag.leaderboards.board.page_data import comparison_data, in_script, index_data, rows_of, script
from lm_eval_rag.leaderboards.submissions.tiers import SELF_REPORTED

SCRIPTS = ("board_elements.js", "board_table.js", "board_figures.js", "board_compare.js", "board.js")  # in this order
SPACE = """---
title: lm-eval-rag leaderboard
emoji: 📚
colorFrom: blue
colorTo: green
sdk: static
app_file: index.html
pinned: false
---

Made by `lm-eval-rag board build`. Every score is computed from predictions.
"""


def write_site(board: Board, out: Path, older: tuple[Version, ...] = ()) -> list[Path]:
    """Write all files; the same board gives the same bytes.

    Args:
        older: Tables of earlier versions of the data or the scorer.

    Raises:
        UserError: The folder holds something that is no site of ours.
    """
    if out.exists() and any(out.iterdir()) and not (out / "board.csv").is_file():
        raise UserError(f"{out} holds other files. Give --out a new folder, or that of an earlier site.")
    output_folder(out)
    for old in (*out.glob("entries/*.html"), *out.glob("data/*.js"), out / "older.html"):
        old.unlink(missing_ok=True)  # of entries that are no longer there
    paths = []
    for name, text in _pages(board, older):
        path = out / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _pages(board: Board, older: tuple[Version, ...]) -> Iterator[tuple[str, str]]:
    """(file, content) of the whole site."""
    data = in_script(index_data(board))
    yield "index.html", _render("board_index", board=board, data=data, older=older, title="RAG leaderboard")
    yield "board.csv", _csv(board)
    yield "README.md", SPACE
    if older:
        yield "older.html", _render("board_older", older=older, title="Earlier versions")
    for entry in board.entries.values():
        yield f"entries/{entry.slug}.html", _render("board_entry", board=board, **entry_values(board, entry))
        yield f"entries/{entry.slug}.answers.html", answers_page(entry)
    for task in board.tasks:
        yield f"data/{task.task}.rows.js", script(["rows", task.task, rows_of(board, task)])
        yield from comparison_data(board, task)


def _csv(board: Board) -> str:
    """All rows as CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    metrics = list(dict.fromkeys(name for task in board.tasks for name in task.metrics if name not in task.members))
    about = ["task", "rank", "name", "kind", "tier", "team", "method", "family", "generator", "parameters", "retriever"]
    writer.writerow(about + [f"{name}{end}" for name in metrics for end in ("", "_low", "_high")])
    for task in board.tasks:
        for row in task.rows:
            entry = board.entries[row.slug] if row.slug else None
            card = entry.card if entry else row.claim
            said: list[Any] = [task.task, row.standing.rank if row.standing else None, row.name, row.kind]
            said += [entry.tier if entry else SELF_REPORTED] if card else [None]
            said += [card.team, card.method, family_of(card.method)] if card else [None] * 3
            said += [card.generator, card.parameters, entry.card.retriever if entry else None] if card else [None] * 3
            scores = [row.scores.get(name) for name in metrics]
            numbers = [end for one in scores for end in ((one.mean, one.low, one.high) if one else (None,) * 3)]
            writer.writerow([_cell(value) for value in said] + ["" if one is None else f"{one:.6g}" for one in numbers])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


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
        script=Markup("".join(map(source, SCRIPTS))),
        cell=cell,
        signed=signed,
        p_value=p_value,
        number="{:,}".format,
    )
    if "data" in values:
        values["data"] = Markup(values["data"])
    return environment.get_template(f"{template}.html.jinja").render(**values)
