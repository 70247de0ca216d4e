"""Questions from whatever the user has: texts, or rows with ``question`` (or ``query``).

Optional columns: ``answer`` or ``answers`` (a text or a list), ``id``, ``time``, ``gold_passages`` (ids of documents or
passages). Every other column is a slice. An empty cell means that the question has none of it.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.documents.records import READERS, Record, is_table, records

log = logging.getLogger(__name__)
TEXT, ANSWERS, GOLD = ("question", "query"), ("answers", "answer"), "gold_passages"
KNOWN = (*TEXT, *ANSWERS, GOLD, "id", "_id", "time")
TAKEN = ("corpus", "scoring", "gold", "facts", "triples", "evidence_sets", "answer_form", "num_fewshot")
ALLOWED = f"a file ({', '.join(READERS)}), hub:ORG/NAME, a frame, a Dataset, or a list of texts or dictionaries"


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the user's.

    Args:
        where: Where it stands, for messages.
        id: Unique among the questions.
        text: The question in words.
        answers: Gold answers, each of which is right; () if there are none.
        time: The time that it is about, or None.
        gold: Ids of the passages or documents that answer it; () if they are unknown.
        slices: Further columns.
    """

    where: str
    id: str
    text: str
    answers: tuple[str, ...] = ()
    time: str | None = None
    gold: tuple[str, ...] = ()
    slices: Mapping[str, str] = field(default_factory=dict)


def read_questions(source: Any) -> tuple[Question, ...]:
    """Questions in their order.

    Raises:
        UserError: No question, a row without ``question``, a value of the wrong type, or an id that is repeated.
    """
    questions: dict[str, Question] = {}
    for question in _questions(source):
        if question.id in questions:
            raise UserError(
                f"{question.where}: the id {question.id!r} is that of {questions[question.id].where} too. Give each "
                "question its own id, or leave the ids out."
            )
        questions[question.id] = question
    texts = Counter((question.text, question.time) for question in questions.values())
    repeated = [text for (text, _), number in texts.items() if number > 1]
    if repeated:
        log.warning(
            "Repeated questions: %d, such as %r. Each is asked and counted as often as it is there.",
            len(repeated), repeated[0][:80],
        )  # fmt: skip
    if not questions:
        raise UserError(f"There are no questions in {str(source)[:80]!r}. Give {ALLOWED}.")
    return tuple(questions.values())


def _questions(source: Any) -> Iterator[Question]:
    if isinstance(source, (str, Path)) or is_table(source):
        if isinstance(source, (str, Path)) and os.path.isdir(source):
            raise UserError(f"{source} is a folder. Give questions as {ALLOWED}.")
        for number, record in enumerate(records(source, "questions")):
            yield _of_record(record, f"q{number}")
    elif isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes)):
        for number, item in enumerate(source):
            yield _of_item(item, f"question {number + 1}", f"q{number}")
    else:
        raise UserError(f"Questions cannot be read from {str(source)[:80]!r}. Give {ALLOWED}.")


def _of_item(item: Any, where: str, id: str) -> Question:
    if isinstance(item, Query):
        return Question(where, item.id, item.text, time=item.time)
    if isinstance(item, str):
        item = {TEXT[0]: item}
    if not isinstance(item, Mapping):
        raise UserError(f"{where}: {str(item)[:80]!r} is no question. Give a text or a dictionary.")
    return _of_record(Record.of(where, item), id)


def _of_record(record: Record, id: str) -> Question:
    text = record.text(*TEXT)
    if text is None:
        empty = next((column for column in TEXT if column in record.fields), None)
        if empty is not None:
            raise record.wrong(f"the question in the column {empty!r} is empty. Write one, or leave the row out.")
        columns = ", ".join(record.fields) or "none"
        raise record.wrong(f"there is no question (columns: {columns}). Name the column 'question'.")
    name, answers = record.first(ANSWERS)
    if all(record.fields.get(column) is not None for column in ANSWERS):
        raise record.wrong(f"there are both {' and '.join(map(repr, ANSWERS))}. Keep one of the two columns.")
    gold = record.fields.get(GOLD)
    others = {name: value for name, value in record.fields.items() if name not in KNOWN}
    taken = [name for name in others if name in TAKEN or name.startswith("_")]
    if taken:
        raise record.wrong(
            f"a column must not be named {taken[0]!r}, which has a meaning here. Rename it; "
            "gold answers stand in `answer` or `answers`."
        )
    return Question(
        where=record.where,
        id=record.text("id", "_id") or id,
        text=text.strip(),
        answers=() if answers is None else tuple(filter(str.strip, record.texts(name, answers))),
        time=record.text("time"),
        gold=() if gold is None else record.texts(GOLD, gold),
        slices={name: record.as_text(name, value) for name, value in others.items() if value is not None},
    )
