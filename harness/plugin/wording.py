"""How our tasks word a document for lm_eval's stock models: functions, since a template costs more than a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def question(doc: Mapping[str, Any]) -> str:
    """The question, with a place for the answer."""
    return f"Question: {doc['query']}\nAnswer:"


def question_with_time(doc: Mapping[str, Any]) -> str:
    """The question after the time at which it was asked, if that is known."""
    return f"Asked at: {doc['time']}\n{question(doc)}" if doc["time"] else question(doc)


def first_answer(doc: Mapping[str, Any]) -> str:
    """The first gold answer; "" for a question without any."""
    return str(doc["answers"][0]) if doc["answers"] else ""
