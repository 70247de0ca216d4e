"""MuSiQue (arXiv:2108.00573): paragraphs are not split into sentences, and titles repeat; so gold is by whole text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.tasks.wikipedia.records import Page, Question
from lm_eval_rag.tasks.wikipedia.rows import read_rows, reading


def questions(paths: Sequence[Path]) -> Iterator[Question]:
    """Every item of files in the official format; the type is the number of hops with the shape, such as ``3hop1``."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                yield _question(row)


def _question(row: dict[str, Any]) -> Question:
    paragraphs = row["paragraphs"]
    context = tuple(Page(p["title"], (p["paragraph_text"],), whole=True) for p in paragraphs)
    gold = tuple(page.text for page, p in zip(context, paragraphs, strict=True) if p["is_supporting"])
    answers = (row["answer"], *row.get("answer_aliases", ()))
    return Question(
        id=row["id"],
        text=row["question"].strip(),
        answers=tuple(dict.fromkeys(answer for answer in answers if answer)),
        type=row["id"].partition("__")[0],
        gold=gold or None,
        context=context,
    )
