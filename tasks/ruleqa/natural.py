"""RuleQA's questions in English: ``english/<graph>.toml`` has one hand-written question per relation.

``ruleqa_i_natural`` and its like have the answers, slices, rules and documents of ``ruleqa_i``. Only the words of the
questions differ, those of F_R and F_G included: "Whom did Iraq consult on 3 November 2014?" for "Time 2014-11-03 what
does Iraq Consult ?". A question determines its subject, relation and time (a test reads them back).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.folders import CARD, content_folder
from lm_eval_rag.harness.data.question_forms import SUBJECT, TIME, write_forms
from lm_eval_rag.tasks.ruleqa.specs import SPECS, spec_of

NATURAL = "_natural"  # suffix of the variant in English
NATURAL_TASKS = tuple(task + NATURAL for task in SPECS)
MONTHS = (  # not from the locale
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
CHANGE = (
    "Every question of {} is worded in English, with one hand-written wording per relation. This changes the text that "
    "is retrieved with and shown to a generator, nothing else: documents, rules, answers, slices and the order of the "
    "questions are the same. The rule bank knows the wordings, so it selects the same rules."
)
TABLES = ("queries", "retriever_train", "generator_train")
VERSION = 1  # increase it when the same questions are worded differently by the code here


@cache
def english(graph: str) -> Mapping[str, str]:
    """Relation -> question with the places ``{subject}`` and, on temporal graphs, ``{time}``.

    Args:
        graph: Name of a reader in :mod:`lm_eval_rag.tasks.ruleqa.graphs`.
    """
    text = (files(__package__) / "english" / f"{graph}.toml").read_text(encoding="utf-8")
    forms: dict[str, str] = tomllib.loads(text)
    return forms


def question(graph: str, subject: str, relation: str, time: str | None) -> str:
    """The question for the objects of (subject, relation) at a time, in English.

    Raises:
        UserError: The relation has no question, or its question needs a time.
    """
    form = english(graph).get(relation)
    if form is None:
        raise UserError(
            f"The relation {relation!r} of {graph} has no question in English. Add one to "
            f"tasks/ruleqa/english/{graph}.toml, or use the task without {NATURAL}."
        )
    if TIME in form:
        if time is None:
            raise UserError(f"The question {form!r} needs a time, and {subject!r} has none.")
        form = form.replace(TIME, spoken(time))
    return form.replace(SUBJECT, subject)


def spoken(time: str) -> str:
    """A year as it is; ``2014-11-03`` as 3 November 2014."""
    if "-" not in time:
        return time
    year, month, day = map(int, time.split("-"))
    return f"{day} {MONTHS[month - 1]} {year}"


def build_natural(task: str, **options: Any) -> str:
    """As :func:`lm_eval_rag.tasks.ruleqa.build.build`, for the name of a task in English."""
    from lm_eval_rag.tasks.ruleqa.build import build

    plain = task.removesuffix(NATURAL)
    return worded(task, spec_of(plain).graph, build(plain, **options))


def worded(task: str, graph: str, corpus: str) -> str:
    """The id of a folder with the questions of a built set in English; it is written if it does not exist.

    The folder has the tables ``TABLES`` and refers to the set for documents and rules.

    Args:
        task: Name of the task in English, such as ``ruleqa_i_natural``.
        corpus: Id of the built set.
    """
    inputs = {"corpus": corpus, "forms": dict(english(graph)), "version": VERSION}

    def write(folder: Path) -> Mapping[str, Any]:
        for name in TABLES:
            _write_worded(cache_dir() / corpus / f"{name}.parquet", folder / f"{name}.parquet", graph)
        write_forms(folder, corpus, english(graph))
        (folder / CARD).write_text(_card(task, corpus), encoding="utf-8")
        return {"task": task, "version": VERSION, "documents": corpus}

    return content_folder(task, inputs, write)


def _write_worded(source: Path, target: Path, graph: str) -> None:
    import polars as pl

    table = pl.read_parquet(source)
    rows = table.select("subject", "relation", "time").iter_rows()
    text = pl.Series("text", [question(graph, *row) for row in rows], dtype=pl.String)
    table.with_columns(text).write_parquet(target)


def _card(task: str, corpus: str) -> str:
    plain = task.removesuffix(NATURAL)
    return (
        f"# {task}: the questions of {plain} in English\n\n"
        f"{CHANGE.format(plain)} The set is `{corpus}`; its card has the numbers, departures, sources and terms.\n"
    )
