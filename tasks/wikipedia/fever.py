"""FEVER (arXiv:1803.05355): claims with a label and sets of evidence sentences, and the pages they are from.

FEVER names a page by its title with underscores and tokens for brackets (``Soul_Food_-LRB-film-RRB-``). This name is
the passage's id, since evidence is given by it; the text has spaces and brackets.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.scoring.fever import LABELS, NOT_ENOUGH_INFO, label_of
from lm_eval_rag.tasks.wikipedia.records import Fact, Page, Question
from lm_eval_rag.tasks.wikipedia.rows import parsed, read_rows, reading

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "-COLON-": ":"}
INSTRUCTION = (
    "Each question is a claim. Its answer is one label: SUPPORTS if the claim is true, REFUTES if it is false, or NOT "
    "ENOUGH INFO if neither can be decided."
)


def questions(paths: Sequence[Path]) -> Iterator[Question]:
    """Every claim of files in the official format. Gold passages are all pages that any evidence set names."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                sets = _sets(row["evidence"])
                gold = tuple(dict.fromkeys(page for one in sets for page, _ in one))
                yield _claim(row, where, sets or None, gold or None)


def sentence_questions(paths: Sequence[Path]) -> Iterator[Question]:
    """Claims that come with the text of one gold sentence, which is then their only evidence."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                page = _sentence(row)
                yield _claim(row, where, (((page.id, 0),),), (page.id,))


def sentence_pages(paths: Sequence[Path]) -> Iterator[Page]:
    """The gold sentences of such claims, each as a passage."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                yield _sentence(row)


def paired_pages(paths: Sequence[Path]) -> Iterator[Page]:
    """The evidence sentences of Symmetric FEVER (arXiv:1908.05267), which names no pages."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                yield Page("", (readable(row["evidence"]),), id=_digest("evidence", row["evidence"]))


def wiki_pages(paths: Sequence[Path]) -> Iterator[Page]:
    """The introductions of FEVER's Wikipedia, with FEVER's own numbers of sentences."""
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(name for name in archive.namelist() if name.endswith(".jsonl")):
                with archive.open(name) as file:
                    for number, line in enumerate(io.TextIOWrapper(file, encoding="utf-8"), start=1):
                        row = parsed(line, f"{name}, line {number}")
                        with reading(f"{name}, line {number}"):
                            yield Page(title_of(row["id"]), _lines(row["lines"]), id=row["id"])


def readable(text: str) -> str:
    """A text with brackets in place of FEVER's tokens for them."""
    for token, bracket in BRACKETS.items():
        text = text.replace(token, bracket)
    return text


def title_of(name: str) -> str:
    """The title of a page by FEVER's name."""
    return readable(name.replace("_", " "))


def _claim(row: dict[str, Any], where: str, sets: tuple[tuple[Fact, ...], ...] | None, gold: Any) -> Question:
    label = label_of(str(row["label"]))
    if label is None:
        raise UserError(f"{where}: unknown label {row['label']!r}. Allowed: {', '.join(LABELS)}.")
    known = None if label == NOT_ENOUGH_INFO else sets
    return Question(
        id=str(row["id"]), text=row["claim"].strip(), answers=(label,), type=label, evidence_sets=known,
        gold=None if label == NOT_ENOUGH_INFO else gold,
    )  # fmt: skip


def _sets(evidence: Any) -> tuple[tuple[Fact, ...], ...]:
    """Distinct sets of (page, sentence); annotations without a page (of NOT ENOUGH INFO) are no evidence."""
    sets = [tuple((page, int(number)) for _, _, page, number in one if page is not None) for one in evidence]
    return tuple(dict.fromkeys(one for one in sets if one))


def _sentence(row: dict[str, Any]) -> Page:
    page, text = row["evidence"][0][0][2], row["evidence_text"]
    return Page(title_of(page), (readable(text),), id=_digest(page, text))


def _digest(name: str, text: str) -> str:
    return f"{name}-{sha256(text.encode()).hexdigest()[:8]}"


def _lines(lines: str) -> tuple[str, ...]:
    """Sentences by their number. A line is number, sentence and links, separated by tabs; numbers may be missing."""
    numbered: dict[int, str] = {}
    for line in lines.split("\n"):
        number, *rest = line.split("\t")
        if number.isdigit() and rest:
            numbered.setdefault(int(number), readable(rest[0]))
    return tuple(numbered.get(number, "") for number in range(max(numbered, default=-1) + 1))
