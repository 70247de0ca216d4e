"""The tree of a query of the small query language (:mod:`lm_eval_rag.harness.kg.query`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class QueryError(ValueError):
    """A text that is no query, or a query whose calls do not fit; says where and what was expected."""


@dataclass(frozen=True, slots=True)
class Value:
    """A constant."""

    value: Any


@dataclass(frozen=True, slots=True)
class CallNode:
    """A call; each argument is a name or None, and a node."""

    function: str
    arguments: tuple[tuple[str | None, Node], ...]


@dataclass(frozen=True, slots=True)
class Test:
    """``path operator value``; or ``all``, ``any`` or ``not`` of ``parts``."""

    operator: str
    path: tuple[str, ...] = ()
    value: Any = None
    parts: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its name and what it was given."""

    name: str
    path: tuple[str, ...] = ()
    test: Test | None = None
    number: int | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Pipe:
    """Stages applied to a source, from the left."""

    source: Node
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """Whether ``left operator right`` holds."""

    operator: str
    left: Node
    right: Node


Node = Value | CallNode | Pipe | Compare
