"""Questions that come without passages: Natural Questions, TriviaQA, WebQuestions, Bamboogle, and others' questions."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.tasks.wikipedia.records import Page, Question
from lm_eval_rag.tasks.wikipedia.rows import read_rows, read_tabs, reading


def questions(paths: Sequence[Path]) -> Iterator[Question]:
    """Items with a question and ``answer`` or ``answers``, a text or a list; the first is the main answer."""
    for path in paths:
        stem = path.name.partition(".")[0]
        for number, (where, row) in enumerate(read_rows(path), start=1):
            with reading(where):
                inner = row.get("extra_info", row)  # Search-R1's form has the item inside
                answers = inner["answers"] if "answers" in inner else inner["answer"]
                text = inner["question"].strip()
                yield Question(str(row.get("id") or f"{stem}-{number}"), text, _texts(answers))


def oracle_questions(paths: Sequence[Path]) -> Iterator[Question]:
    """Natural Questions that come with their gold passage (arXiv:2307.03172)."""
    for path in paths:
        stem = path.name.partition(".")[0]
        for number, (where, row) in enumerate(read_rows(path), start=1):
            with reading(where):
                context = tuple(Page(one["title"], (one["text"],), whole=True) for one in row["ctxs"])
                gold = tuple(page.text for page, one in zip(context, row["ctxs"], strict=True) if one["isgold"])
                yield Question(
                    f"{stem}-{number}", row["question"].strip(), _texts(row["answers"]), gold=gold or None,
                    context=context,
                )  # fmt: skip


def dpr_topics(paths: Sequence[Path]) -> Iterator[Question]:
    """DPR's test questions as Anserini has them: question, tab, answers as a Python list; quoted as in CSV files."""
    for path in paths:
        stem = path.name.partition(".txt")[0]
        for number, (where, (text, answers)) in enumerate(read_tabs(path), start=1):
            with reading(where):
                answers = _unquoted(answers)
                yield Question(f"{stem}-{number}", _unquoted(_unquoted(text)).strip(), _texts(literal_eval(answers)))


def _unquoted(field: str) -> str:
    """A field of a CSV file without its quotation marks; a field without them as it is."""
    field = field.strip()
    quoted = len(field) > 1 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if quoted else field


def _texts(value: Any) -> tuple[str, ...]:
    """Answers without blanks and repetitions."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"answers are {value!r}, not a text or a list of texts")
    return tuple(dict.fromkeys(text for text in texts if text.strip()))
