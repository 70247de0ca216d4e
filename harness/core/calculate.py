"""Expressions that a model wrote, read and reckoned: arithmetic, comparisons, a few functions, dates.

The paper's system hands them to Python's ``eval`` (arXiv:2408.05141, section 4.3) and names the danger. Here a grammar
of our own is parsed by hand; nothing of Python is reached, and length, depth and the size of every number are bounded.

::

    choice     = comparison [ "if" comparison "else" choice ]
    comparison = sum { ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum }
    sum        = product { ( "+" | "-" ) product }
    product    = sign { ( "*" | "/" | "//" | "%" ) sign }
    sign       = ( "+" | "-" ) sign | power              power = member [ "**" sign ]
    member     = atom { "." ( "days" | "year" | "month" | "day" ) }
    atom       = NUMBER | TEXT | "True" | "False" | "[" list "]" | "(" list ")" | NAME "(" list ")"

Names are ``min max sum round abs len date datetime timedelta`` (and ``datetime.date`` and its like). As in Python, a
comparison may go on (``1 < x < 3``), ``**`` binds tighter than a sign before it, ``//`` and ``%`` round down, round
halves go to the even number, and a difference of dates is a span of days. Other names, attributes, keywords, texts in
sums and numbers above 1e30 are refused, each by a name of :data:`.calculate_values.REASONS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lm_eval_rag.harness.common.parsing import Descent
from lm_eval_rag.harness.core.calculate_values import (
    COMPARISONS,
    CONSTANTS,
    FIELDS,
    FUNCTIONS,
    OPERATORS,
    CalculationError,
    Value,
    bounded,
    fit,
    number,
    power,
    read,
)

MAX_LENGTH = 500  # characters
MAX_DEPTH = 24  # of brackets, signs and choices within each other

TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)"""
    r"""|(?P<text>"[^"\\\n]*"|'[^'\\\n]*')|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"""
    r"""|(?P<sign>\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],.]))"""
)


def calculate(expression: str) -> Value:
    """The value of an expression.

    Raises:
        CalculationError: It is no such expression, is too large, or has no value.
    """
    if len(expression) > MAX_LENGTH:
        raise CalculationError("too long", f"{len(expression)} characters, at most {MAX_LENGTH} are read")
    if not expression.strip():
        raise CalculationError("empty")
    try:
        return _Parser(expression).whole()
    except ZeroDivisionError:
        raise CalculationError("division by zero") from None
    except OverflowError:
        raise CalculationError("too large") from None
    except TypeError as error:  # of Python's own operators, which are given nothing but the types of Value
        raise CalculationError("wrong type", str(error)) from None


class _Parser(Descent):
    """Reads and reckons in one pass, one method a rule of the grammar."""

    pattern, most = TOKEN, MAX_DEPTH

    def wrong(self, place: int, said: str) -> CalculationError:
        return CalculationError("not an expression", said)

    def too_deep(self) -> CalculationError:
        return CalculationError("too deep", f"more than {MAX_DEPTH} within each other")

    def whole(self) -> Value:
        value = self.choice()
        if self.token.kind != "end":
            self.fail("the end")
        return value

    def choice(self) -> Value:
        value = self.comparison()
        if not self.take("if"):
            return value
        condition = self.comparison()
        self.need("else")
        other: Value = self.deeper(self.choice)
        if not isinstance(condition, bool):
            raise CalculationError("wrong type", "what follows 'if' is no comparison")
        return value if condition else other

    def comparison(self) -> Value:
        left, holds, asked = self.sum(), True, False
        while sign := self.take(*COMPARISONS):
            right, asked = self.sum(), True
            holds = holds and COMPARISONS[sign](left, right)
            left = right
        return holds if asked else left

    def sum(self) -> Value:
        return self.chain(("+", "-"), self.product)

    def product(self) -> Value:
        return self.chain(("*", "/", "//", "%"), self.sign)

    def chain(self, signs: Sequence[str], rule: Callable[[], Value]) -> Value:
        value = rule()
        while sign := self.take(*signs):
            value = bounded(OPERATORS[sign](*fit(value, rule())))
        return value

    def sign(self) -> Value:
        sign = self.take("+", "-")
        if not sign:
            return self.power()
        value = number(self.deeper(self.sign))
        return -value if sign == "-" else value

    def power(self) -> Value:
        base = self.member()
        return power(number(base), number(self.deeper(self.sign))) if self.take("**") else base

    def member(self) -> Value:
        value = self.atom()
        while self.take("."):
            name, fields = self.token.text, FIELDS.get(type(value), {})
            if name not in fields:
                raise CalculationError("unknown name", f".{name[:40]}")
            self.at += 1
            value = fields[name](value)
        return value

    def atom(self) -> Value:
        token = self.token
        if token.kind == "name":
            return self.named()
        if self.take("["):
            return self.items("]")
        if self.take("("):
            parts, single = self.items(")"), self.tokens[self.at - 2].text != ","
            return parts[0] if len(parts) == 1 and single else parts
        if token.kind not in ("number", "text"):
            self.fail("a value")
        self.at += 1
        return token.text[1:-1] if token.kind == "text" else read(token.text)

    def named(self) -> Value:
        name = self.token.text
        self.at += 1
        if name in CONSTANTS:
            return CONSTANTS[name]
        while self.take("."):
            if self.token.kind != "name":
                self.fail("a name")
            name += f".{self.token.text}"
            self.at += 1
        if name not in FUNCTIONS or not self.take("("):
            raise CalculationError("unknown name", name[:40])
        return bounded(FUNCTIONS[name](self.items(")")))

    def items(self, end: str) -> tuple[Value, ...]:
        parts: list[Value] = []
        while not self.take(end):
            parts.append(self.deeper(self.choice))
            if not self.take(","):
                self.need(end)
                break
        return tuple(parts)
