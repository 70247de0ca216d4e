"""The values of expressions, and the operators and functions on them, with limits of size (see :mod:`.calculate`)."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median
from typing import Any, Literal, get_args

LARGEST = 1e30  # limit of every intermediate number
MAX_DIGITS, LARGE, MAX_DIGITS_LARGE = 12, 1e9, 15  # of a number with a fraction in the result; of one from LARGE on

Reason = Literal[
    "empty", "too long", "too deep", "not an expression", "unknown name", "wrong type", "division by zero",
    "too large", "no real number", "no date", "out of range",
]  # fmt: skip
REASONS: tuple[str, ...] = get_args(Reason)
Value = int | float | bool | str | date | timedelta | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Calculation:
    """The result of an expression: its value as text, or the reason (of :data:`REASONS`) why it was refused.

    Args:
        expression: As it was calculated: without the label, the result and the like that stood in the line.
    """

    expression: str
    value: str = ""
    refused: str = ""


class CalculationError(ValueError):
    """An expression that is refused; ``reason`` is one of :data:`REASONS`."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}{': ' if detail else ''}{detail}")
        self.reason = reason


def written(value: Value) -> str:
    """A value as text: at most 12 digits if it is not whole (15 from 1e9 on), ISO dates, time spans in days."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, timedelta):
        return f"{value.days} days"
    if isinstance(value, float):
        digits = MAX_DIGITS if abs(value) < LARGE else MAX_DIGITS_LARGE
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.{digits}g}"
    return str(value)


def bounded(value: Value) -> Value:
    """The value; raises if it is not a real number or exceeds :data:`LARGEST`."""
    if isinstance(value, complex) or (isinstance(value, float) and math.isnan(value)):
        raise CalculationError("no real number")
    if isinstance(value, int | float) and abs(value) > LARGEST:
        raise CalculationError("too large", f"above {LARGEST:g}")
    return value


def number(value: Value) -> int | float:
    """The value; raises if it is not a number. True is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CalculationError("wrong type", f"{type(value).__name__} where a number is needed")
    return value


def fit(left: Value, right: Value) -> tuple[Any, Any]:
    """Both sides of an operator: numbers, or dates and time spans, for which Python's own operators decide."""
    if any(isinstance(side, date | timedelta) for side in (left, right)):
        return left, right
    return number(left), number(right)


def power(base: float, exponent: float) -> Value:
    """A power, whose size is checked before it is calculated: 9**9**9 would not end."""
    if base < 0 and not float(exponent).is_integer():
        raise CalculationError("no real number", "a root of a negative number")
    size = abs(base)
    if size and exponent * math.log10(size) > math.log10(LARGEST):
        raise CalculationError("too large", f"above {LARGEST:g}")
    if size > 1 and exponent < 0:
        base = float(base)  # a whole number to a negative power would have huge intermediate values
    return bounded(base**exponent)


def _one(parts: Sequence[Value], name: str) -> Value:
    if len(parts) != 1:
        raise CalculationError("wrong type", f"{name} takes one value, {len(parts)} were given")
    return parts[0]


def _among(parts: Sequence[Value], name: str) -> Sequence[Value]:
    """The values of min, max: those of a list, or all arguments."""
    chosen = parts[0] if len(parts) == 1 and isinstance(parts[0], tuple) else parts
    if not chosen or any(isinstance(part, tuple) for part in chosen):
        raise CalculationError("wrong type", f"{name} takes one value or more, or a list of them")
    return chosen


def _sum(parts: Sequence[Value]) -> Value:
    listed = _one(parts, "sum")
    if not isinstance(listed, tuple):
        raise CalculationError("wrong type", "sum takes a list")
    numbers = [number(part) for part in listed]
    return sum(numbers) if all(isinstance(n, int) for n in numbers) else math.fsum(numbers)


def _len(parts: Sequence[Value]) -> Value:
    value = _one(parts, "len")
    if not isinstance(value, tuple | str):
        raise CalculationError("wrong type", "len takes a list or a text")
    return len(value)


def _round(parts: Sequence[Value]) -> Value:
    digits = parts[1] if len(parts) == 2 else 0
    if len(parts) not in (1, 2) or isinstance(digits, bool) or not isinstance(digits, int) or abs(digits) > 30:
        raise CalculationError("wrong type", "round takes a number and, at most, a number of digits")
    value = round(number(parts[0]), digits)
    return value if len(parts) == 2 else int(value)


def _abs(parts: Sequence[Value]) -> Value:
    value = _one(parts, "abs")
    return abs(value) if isinstance(value, timedelta) else abs(number(value))


def _sorted(parts: Sequence[Value]) -> Value:
    return tuple(sorted(_among(parts, "sorted")))


def _mean(parts: Sequence[Value]) -> Value:
    numbers = [number(part) for part in _among(parts, "mean")]
    return math.fsum(numbers) / len(numbers)


def _median(parts: Sequence[Value]) -> Value:
    return median([number(part) for part in _among(parts, "median")])


def _whole(parts: Sequence[Value]) -> Value:
    return int(number(_one(parts, "int")))


def _root(parts: Sequence[Value]) -> Value:
    value = number(_one(parts, "sqrt"))
    if value < 0:
        raise CalculationError("no real number", "a root of a negative number")
    return math.sqrt(value)


def _pow(parts: Sequence[Value]) -> Value:
    if len(parts) != 2:
        raise CalculationError("wrong type", "pow takes a base and an exponent")
    return power(number(parts[0]), number(parts[1]))


def item(value: Value, index: Value) -> Value:
    """The item of a list at an index; negative ones count from the end."""
    if not isinstance(value, tuple) or isinstance(index, bool) or not isinstance(index, int):
        raise CalculationError("wrong type", "an index is a whole number, of a list")
    if not -len(value) <= index < len(value):
        raise CalculationError("out of range", f"index {index} of a list of {len(value)}")
    chosen: Value = value[index]
    return chosen


def _date(parts: Sequence[Value]) -> Value:
    """``date(2024, 2, 28)`` or ``date("2024-02-28")``; a time of day is ignored."""
    try:
        if len(parts) == 1 and isinstance(parts[0], str):
            return date.fromisoformat(parts[0].strip()[:10])
        year, month, day = (int(number(part)) for part in parts[:3])
        return date(year, month, day)
    except (ValueError, OverflowError) as error:
        if isinstance(error, CalculationError):
            raise
        raise CalculationError("no date", str(error)) from None


def _timedelta(parts: Sequence[Value]) -> Value:
    return timedelta(days=number(_one(parts, "timedelta")))


COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
FIELDS: dict[type, dict[str, Callable[[Any], int]]] = {
    date: {name: operator.attrgetter(name) for name in ("year", "month", "day")},
    timedelta: {"days": operator.attrgetter("days")},
}
FUNCTIONS: dict[str, Callable[[Sequence[Value]], Value]] = {
    "min": lambda parts: min(_among(parts, "min")),
    "max": lambda parts: max(_among(parts, "max")),
    "sum": _sum, "round": _round, "abs": _abs, "len": _len, "sorted": _sorted, "int": _whole, "pow": _pow,
    "float": lambda parts: float(number(_one(parts, "float"))),
    "mean": _mean, "statistics.mean": _mean, "median": _median, "statistics.median": _median,
    "sqrt": _root, "math.sqrt": _root,
    "floor": lambda parts: math.floor(number(_one(parts, "floor"))),
    "math.floor": lambda parts: math.floor(number(_one(parts, "floor"))),
    "ceil": lambda parts: math.ceil(number(_one(parts, "ceil"))),
    "math.ceil": lambda parts: math.ceil(number(_one(parts, "ceil"))),
    "date": _date, "datetime": _date, "datetime.date": _date, "datetime.datetime": _date,
    "timedelta": _timedelta, "datetime.timedelta": _timedelta,
}  # fmt: skip
