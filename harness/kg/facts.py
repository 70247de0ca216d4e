"""What the knowledge graph knows about a question: facts with a label, and the calls that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import lookup
from lm_eval_rag.harness.core.types import Plan


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of a reply.

    Args:
        about: The entity and, usually, one aspect of it.
        value: JSON-able.
    """

    about: str
    value: Any

    def text(self, limit: int = 1_000) -> str:
        """``about: value`` on one line, the value as JSON, cut to ``limit`` characters."""
        value = self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)
        return f"{self.about}: {value}"[:limit]


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """Facts in the order of the calls, and why calls failed or were refused."""

    facts: tuple[Fact, ...] = ()
    failures: tuple[str, ...] = ()


class Collector:
    """Collects facts while a plan runs; a failed call is recorded, and the plan goes on without it."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.failures: list[str] = []

    def call(self, function: str, **arguments: Any) -> Plan[Any]:
        """The reply, None if the call failed."""
        try:
            return (yield from lookup(function, **arguments))
        except CallError as error:
            self.failures.append(str(error))
            return None

    def add(self, about: str, value: Any) -> None:
        """Keep a fact, once; an empty value is left out."""
        if value not in (None, [], {}, "") and Fact(about, value) not in self.facts:
            self.facts.append(Fact(about, value))

    def result(self) -> GraphFacts:
        """All facts and failures."""
        return GraphFacts(tuple(self.facts), tuple(dict.fromkeys(self.failures)))


def table_rows(table: dict[str, dict[str, Any]] | None) -> list[dict[str, Any]]:
    """The rows of a table by column, as the sports functions return it, each with its name under ``key``."""
    names = list(next(iter(table.values()), {})) if table else []
    return [{"key": name, **{column: cells.get(name) for column, cells in (table or {}).items()}} for name in names]


def json_values(text: str, *, longest: int = 20_000, most: int = 200) -> Iterator[Any]:
    """Every JSON object or list in a text, from the left; inner ones are not repeated.

    Args:
        longest: Only so many characters are read.
        most: Limit of attempts, so that a text of brackets does not take quadratic time.
    """
    decoder, text, place = json.JSONDecoder(), text[:longest], 0
    for _ in range(most):
        starts = [start for start in (text.find("{", place), text.find("[", place)) if start >= 0]
        if not starts:
            return
        try:
            value, place = decoder.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            place = min(starts) + 1
        else:
            yield value
