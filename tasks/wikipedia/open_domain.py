"""Questions that come without passages: Natural Questions, TriviaQA, WebQuestions, Bamboogle, and others' questions."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.tasks.wikipedia.records import Page, Question
from lm_eval_rag.tasks.wikipedia.rows import read_rows, read_tabs, reading

TOPICS = "topics.dpr.trivia.test"  # ids of TriviaQA's questions begin with it, whichever file they are read from
_QUOTED = r"'(?:[^'\\]|\\.)*'(?=, |$)"
# A text that lost its double quotes contains an apostrophe, or Python would have printed it in single quotes.
_BARE = r"[^']*'.*?(?=, |$)(?:, [^']+(?=, '|$))?"
_ITEM = re.compile(rf"({_QUOTED}|{_BARE})(?:, |$)")


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


def derived_topics(paths: Sequence[Path]) -> Iterator[Question]:
    """TriviaQA's topics as the mirror has them: JSON Lines, in which 1,786 lists of answers are one damaged text each.

    Such a text is a Python list whose items in double quotes have lost these. They are split again. Compared with
    Anserini's file, 3 questions have lost all but the end of their text, and 23 have other answers after normalisation,
    mostly because a text with a comma cannot be told from two answers.
    """
    for path in paths:
        for number, (where, row) in enumerate(read_rows(path), start=1):
            with reading(where):
                answers = _texts(row["answers"])
                if len(answers) == 1 and answers[0].startswith("["):
                    answers = _texts(_split(answers[0]))
                yield Question(f"{TOPICS}-{number}", _unquoted(_unquoted(row["question"])).strip(), answers)


def _split(damaged: str) -> list[str]:
    """The items of a printed Python list without double quotes.

    Raises:
        ValueError: It is not such a list.
    """
    items = _ITEM.findall(damaged[1:-1])
    if ", ".join(items) != damaged[1:-1] or not damaged.endswith("]"):
        raise ValueError(f"{damaged!r} is no list of answers")
    return [literal_eval(item) if re.fullmatch(_QUOTED, item) else item for item in items]


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
