"""A line of the official files as a record, in all variants of the format.

Alternative answers are under ``alt_ans`` or ``alternative_answers``: a list, or a list as JSON text. Answers may be
numbers. Popularity is missing, or empty if the answer is from the web. A page may be empty, and an address may occur
twice. An unknown time format, and a label that is not in the published lists, is only noted and counted, because only
slices depend on it. A line without a question or an answer is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.tasks.crag.clock import iso_time

ALTERNATIVES = ("alt_ans", "alternative_answers")
LABELS = {
    "domain": ("finance", "music", "movie", "sports", "open"),
    "question_type": (
        *("simple", "simple_w_condition", "set", "comparison", "aggregation", "multi-hop", "post-processing"),
        "false_premise",
    ),
    "static_or_dynamic": ("static", "slow-changing", "fast-changing", "real-time"),
    "popularity": ("head", "torso", "tail"),
}
MAX_PAGE = 4_000_000  # characters of a page; twice as many as a reader reads
MAX_FIELD = 10_000  # characters of a page's name, address or snippet
CUT = "page cut"


@dataclass(frozen=True, slots=True)
class Page:
    """A page that the search returned; a missing field is "", and a cut page has a ``note``."""

    name: str = ""
    url: str = ""
    snippet: str = ""
    modified: str = ""
    html: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A question.

    Args:
        id: ``interaction_id``, or "" if it is missing.
        query: The question.
        answers: The answer and its alternatives, each once; at least one.
        time: When it was asked, in ISO 8601; None if unknown.
        labels: domain, question_type, static_or_dynamic and popularity; None if unknown.
        split: 0 (validation) or 1 (public test); None if unknown.
        pages: In the search's order.
        notes: Deviations from the published format.
    """

    id: str
    query: str
    answers: tuple[str, ...]
    time: str | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    split: int | None = None
    pages: tuple[Page, ...] = ()
    notes: tuple[str, ...] = ()


def parse(line: bytes | str, where: str) -> Record:
    """The record of a line.

    Args:
        where: File and line, for messages.

    Raises:
        UserError: The line is not JSON, or not a record of CRAG.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({error}). CRAG's files have one JSON object per line.") from None
    if not isinstance(row, dict) or not _text(row.get("query")) or not _text(row.get("answer")):
        keys = ", ".join(sorted(map(str, row))[:12]) if isinstance(row, dict) else type(row).__name__
        raise UserError(
            f"{where}: not a record of CRAG. Needed: an object with 'query' and 'answer', and for most uses "
            f"'search_results' and 'interaction_id'. Found: {keys or 'an empty object'}."
        )
    notes: list[str] = []
    return Record(
        id=_text(row.get("interaction_id")),
        query=_text(row["query"]),
        answers=tuple(dict.fromkeys((_text(row["answer"]), *_alternatives(row, where)))),
        time=_time(row.get("query_time"), notes),
        labels={name: _label(row.get(name), name, notes) for name in LABELS},
        split=_split(row.get("split"), where),
        pages=_pages(row.get("search_results"), where),
        notes=tuple(notes),
    )


def _text(value: Any) -> str:
    """A text or number as text; "" for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _alternatives(row: Mapping[str, Any], where: str) -> list[str]:
    """All alternative answers, under either key."""
    values: list[Any] = []
    for name in ALTERNATIVES:
        value = row.get(name)
        if isinstance(value, str):
            value = _listed(value)
        elif isinstance(value, int | float):
            value = [value]
        if not isinstance(value, list | None):
            raise UserError(f"{where}: {name!r} is {type(value).__name__}; needed is a list of texts and numbers.")
        values += value or []
    return [text for text in map(_text, values) if text]


def _listed(text: str) -> Any:
    """The list in a JSON text; any other text is itself an answer."""
    try:
        value = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError):
        return [text]
    return value if isinstance(value, list) else [text]


def _time(value: Any, notes: list[str]) -> str | None:
    if value in (None, ""):
        return None
    try:
        return iso_time(str(value))
    except UserError:
        notes.append("query time not understood")
        return None


def _label(value: Any, name: str, notes: list[str]) -> str | None:
    label = _text(value).lower()
    if label and label not in LABELS[name]:
        notes.append(f"{name} {label[:40]!r} not in the published list")
    return label or None


def _split(value: Any, where: str) -> int | None:
    if value in (None, ""):
        return None
    if str(value) not in ("0", "1"):
        raise UserError(f"{where}: 'split' is {str(value)[:40]!r}; allowed are 0 (validation) and 1 (public test).")
    return int(value)


def _pages(value: Any, where: str) -> tuple[Page, ...]:
    if not isinstance(value, list | None) or not all(isinstance(page, dict) for page in value or ()):
        raise UserError(
            f"{where}: 'search_results' is not a list of objects, each a page with its HTML under 'page_result'."
        )
    return tuple(_page(page) for page in value or ())


def _page(result: Mapping[str, Any]) -> Page:
    html = result.get("page_result")
    html = html if isinstance(html, str) else ""
    name, url, snippet, modified = (
        _text(result.get(f"page_{key}"))[:MAX_FIELD] for key in ("name", "url", "snippet", "last_modified")
    )
    return Page(name, url, snippet, modified, html[:MAX_PAGE], CUT if len(html) > MAX_PAGE else "")
