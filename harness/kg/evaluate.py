"""What a query (:mod:`lm_eval_rag.harness.kg.query`) means, as a plan that asks for its calls.

- A reply becomes rows where a stage needs rows: a list is its items; an object of objects (prices by day) is one row
  each with its ``key``; any other object is rows of ``key`` and ``value``; None is no row. Tables of the sports
  functions are rows at once, and a chart's two lists are rows of ``song`` and ``artist``.
- ``get`` takes a field of an object, or of each row that has it; a field that is missing is None, or left out.
- Texts that are numbers compare as numbers (``"0012"`` < 13, ``"1,234"`` = 1234), other texts without regard to case,
  ISO dates thereby in their order. A number and a text that is none, or a missing field, compare as unequal, and no
  order holds between them.
- ``sort`` puts numbers before texts and rows without the field last, and keeps the order of equals.
- ``min``, ``max``, ``sum`` and ``mean`` are of the numbers among the values; None when there is none.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import lookup
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.kg.facts import rows as table_rows
from lm_eval_rag.harness.kg.functions import FUNCTIONS, bind_arguments
from lm_eval_rag.harness.kg.query import parse_query
from lm_eval_rag.harness.kg.tree import CallNode, Compare, Node, Pipe, QueryError, Stage, Test, Value

NUMBER = re.compile(r"-?(?:[0-9]{1,30}|[0-9]{1,3}(?:,[0-9]{3}){1,9})(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,2})?")


def run_query(query: str | Node) -> Plan[Any]:
    """The value of a query: what its calls return, through its stages; True or False for a comparison.

    Raises:
        QueryError: The text is no query, or an argument does not fit its function.
        CallError: A call failed.
    """
    return (yield from _value(parse_query(query) if isinstance(query, str) else query))


def _value(node: Node) -> Plan[Any]:
    if isinstance(node, Value):
        return node.value
    if isinstance(node, Compare):
        left = yield from _value(node.left)
        right = yield from _value(node.right)
        return holds(node.operator, left, right)
    if isinstance(node, Pipe):
        value = yield from _value(node.source)
        for stage in node.stages:
            value = STAGES[stage.name](value, stage)
        return value
    return (yield from _called(node))


def _called(node: CallNode) -> Plan[Any]:
    function, given = FUNCTIONS[node.function], {}
    free = [p.name for p in function.parameters if p.name not in dict(node.arguments)]
    for name, argument in node.arguments:
        if name is None and not free:
            raise QueryError(f"{function.name}: too many arguments")
        given[name or free.pop(0)] = yield from _value(argument)
    try:
        arguments = bind_arguments(function, given)
    except UserError as error:
        raise QueryError(str(error)) from None
    reply = yield from lookup(function.name, **arguments)
    if function.result == "columns":
        return table_rows(reply)
    if function.result == "lists" and isinstance(reply, list) and len(reply) == 2 and None not in reply:
        return [{"song": song, "artist": artist} for song, artist in zip(*reply, strict=False)]
    return reply


def rows(value: Any) -> list[Any]:
    """A value as rows."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        nested = bool(value) and all(isinstance(part, dict) for part in value.values())
        return [{"key": k, **part} if nested else {"key": k, "value": part} for k, part in value.items()]
    return [value]


def field(value: Any, path: Sequence[str]) -> Any:
    """The part of a value that a path leads to, None if it leads nowhere."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list | tuple) and part.isdecimal() and len(part) < 10:
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def number(value: Any) -> float | None:
    """The number that a value is or writes, else None."""
    if isinstance(value, str) and len(value) < 80 and NUMBER.fullmatch(value.strip()):
        value = float(value.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def holds(sign: str, left: Any, right: Any) -> bool:
    """Whether ``left sign right``."""
    if sign == "contains":
        return _contains(left, right)
    a, b = number(left), number(right)
    if a is not None and b is not None:
        return bool(SIGNS[sign](a, b))
    if isinstance(left, str) and isinstance(right, str) and a is b is None:
        return bool(SIGNS[sign](left.casefold(), right.casefold()))
    equal = type(left) is type(right) and left == right
    return equal if sign == "=" else not equal if sign == "!=" else False


def _contains(left: Any, right: Any) -> bool:
    if isinstance(left, list | tuple):
        return any(holds("=", item, right) for item in left)
    return isinstance(left, str) and str(right).casefold() in left.casefold()


def passes(row: Any, test: Test) -> bool:
    """Whether a row fulfils a condition."""
    if test.operator in JOINS:
        return JOINS[test.operator](passes(row, part) for part in test.parts)
    return holds(test.operator, field(row, test.path), test.value)


def _get(value: Any, stage: Stage) -> Any:
    if isinstance(value, list | tuple) and not stage.path[0].isdecimal():
        found = [field(row, stage.path) for row in value]
        return [part for part in found if part is not None]
    return field(value, stage.path)


def _where(value: Any, stage: Stage) -> list[Any]:
    assert stage.test is not None
    return [row for row in rows(value) if passes(row, stage.test)]


def _sort(value: Any, stage: Stage) -> list[Any]:
    keyed = [(field(row, stage.path), row) for row in rows(value)]
    kinds: list[list[tuple[Any, Any]]] = [[], [], []]  # numbers, texts, the rest
    for found, row in keyed:
        n = number(found)
        kind = 0 if n is not None else 1 if isinstance(found, str) else 2
        kinds[kind].append((n if kind == 0 else str(found).casefold(), row))
    for part in kinds[:2]:
        part.sort(key=operator.itemgetter(0), reverse=stage.descending)
    return [row for part in kinds for _, row in part]


def _first(value: Any, stage: Stage) -> Any:
    listed = rows(value)
    return (listed[0] if listed else None) if stage.number is None else listed[: stage.number]


def _last(value: Any, stage: Stage) -> Any:
    listed = rows(value)
    return (listed[-1] if listed else None) if stage.number is None else listed[max(0, len(listed) - stage.number) :]


def _unique(value: Any, stage: Stage) -> list[Any]:
    kept: dict[str, Any] = {}
    for row in rows(value):
        kept.setdefault(repr(row), row)
    return list(kept.values())


def _reduced(reduce: Callable[[list[float]], float]) -> Callable[[Any, Stage], Any]:
    def stage_value(value: Any, stage: Stage) -> Any:
        numbers = [n for row in rows(value) if (n := number(field(row, stage.path))) is not None]
        try:
            return reduce(numbers) if numbers else None
        except OverflowError:  # a sum beyond the largest number
            return None

    return stage_value


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
JOINS: dict[str, Callable[[Any], bool]] = {"all": all, "any": any, "not": lambda parts: not any(parts)}
STAGES: dict[str, Callable[[Any, Stage], Any]] = {
    "get": _get,
    "where": _where,
    "sort": _sort,
    "count": lambda value, stage: len(rows(value)),
    "unique": _unique,
    "first": _first,
    "last": _last,
    "min": _reduced(min),
    "max": _reduced(max),
    "sum": _reduced(math.fsum),
    "mean": _reduced(lambda numbers: math.fsum(numbers) / len(numbers)),
}
