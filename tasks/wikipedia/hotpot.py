"""HotpotQA and 2WikiMultihopQA, which share one record format (arXiv:1809.09600, arXiv:2011.01060).

The format occurs in three shapes: lists as in the official files (``context`` is a list of [title, sentences]), columns
as in Parquet files on the Hub (``{"title": [...], "sentences": [...]}``), and either of them as a JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.tasks.wikipedia.records import Page, Question
from lm_eval_rag.tasks.wikipedia.rows import read_rows, read_tabs, reading


def questions(paths: Sequence[Path]) -> Iterator[Question]:
    """Every item of files in the official format; one without an id is named by its file and number."""
    for path in paths:
        for number, (where, row) in enumerate(read_rows(path), start=1):
            with reading(where):
                yield _question(row, f"{path.name.partition('.')[0]}-{number}")


def _question(row: dict[str, Any], name: str) -> Question:
    context = tuple(Page(title, tuple(sentences)) for title, sentences in _pairs(row["context"], "sentences"))
    facts = tuple((title, int(sentence)) for title, sentence in _pairs(row["supporting_facts"], "sent_id"))
    needed = {title for title, _ in facts}
    gold = tuple(page.text for page in context if page.title in needed)
    triples = _plain(row.get("evidences"))
    return Question(
        id=str(row.get("_id") or row.get("id") or name),
        text=row["question"].strip(),
        answers=(row["answer"],) if row.get("answer") else (),
        type=row.get("type"),
        facts=facts,
        triples=None if triples is None else tuple((s, r, o) for s, r, o in triples),
        gold=gold if needed <= {page.title for page in context} else None,
        context=context,
    )


def _pairs(value: Any, second: str) -> list[Any]:
    """Pairs of a title and something, from a list of pairs or from two columns."""
    value = _plain(value)
    return list(zip(value["title"], value[second], strict=True)) if isinstance(value, dict) else list(value)


def _plain(value: Any) -> Any:
    """A value that may have been written as a JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def named_questions(paths: Sequence[Path]) -> Iterator[Question]:
    """HotpotQA's development questions without paragraphs, and their official ids.

    Args:
        paths: The questions (question, answer, type), and a table of ids and questions.
    """
    answers, topics = paths
    ids = {" ".join(text.split()): id for _, (id, text) in read_tabs(topics)}
    for where, row in read_rows(answers):
        with reading(where):
            text = " ".join(row["question"].split())
            yield Question(ids[text], row["question"].strip(), (row["answer"],), row.get("type"))
