"""A small query language over the API: calls, then stages that select, compare, sort and count.

    movie_get_movie_info("A Title") | first | get cast | where order < 3 | get name
    sports_nba_get_games_on_date("2022-10", "A Team") | where team_name_home = "A Team" and wl_home = "W" | count
    finance_get_eps("AAA") > finance_get_eps("BBB")

::

    query     = pipeline [ OPERATOR pipeline ]           OPERATOR: = != < <= > >=
    pipeline  = source { "|" stage }
    source    = NAME "(" [ argument { "," argument } ] ")" | value | "(" query ")"
    argument  = [ NAME ":" ] pipeline
    stage     = "get" path | "where" condition | "sort" path [ "asc" | "desc" ] | "count" | "unique"
              | "first" [ NUMBER ] | "last" [ NUMBER ] | ( "min" | "max" | "sum" | "mean" ) [ path ]
    condition = all { "or" all }        all = test { "and" test }
    test      = "not" test | "(" condition ")" | path ( OPERATOR | "contains" ) value
    path      = part { "." part }       part = NAME | TEXT | NUMBER
    value     = TEXT | NUMBER | "true" | "false" | "null" | "[" value { "," value } "]"

Competitors of KDD Cup 2024 had models write such queries; the grammar is ours. The parser is by hand and knows nothing
of Python; length, depth and the number of calls are bounded. What the stages mean is in
:mod:`lm_eval_rag.harness.kg.evaluate`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from lm_eval_rag.harness.common.parsing import Descent
from lm_eval_rag.harness.kg.functions import FUNCTIONS
from lm_eval_rag.harness.kg.tree import CallNode, Compare, Node, Pipe, QueryError, Stage, Test, Value

MAX_LENGTH = 2_000  # characters
MAX_DEPTH = 8
MAX_CALLS = 8
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>-?[0-9]{1,30}(?:\.[0-9]{1,30})?)"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>!=|<=|>=|[=<>|(),:.\[\]]))""",
    re.DOTALL,
)
CONSTANTS = {"true": True, "false": False, "null": None}


def parse_query(text: str) -> Node:
    """The tree of a query.

    Raises:
        QueryError: It is none, names an unknown function, or is too long, too deep or has too many calls.
    """
    if len(text) > MAX_LENGTH:
        raise QueryError(f"the query has {len(text)} characters, at most {MAX_LENGTH} are allowed")
    return _Parser(text).whole()


class _Parser(Descent):
    """Reads one query, one method a rule of the grammar."""

    pattern, most = TOKEN, MAX_DEPTH

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.calls = 0

    def wrong(self, place: int, said: str) -> QueryError:
        return QueryError(f"at character {place + 1}: {said}")

    def too_deep(self) -> QueryError:
        return QueryError(f"the query is nested more than {MAX_DEPTH} deep")

    def whole(self) -> Node:
        node = self.query()
        if self.token.kind != "end":
            self.fail("'|', a comparison or the end")
        return node

    def query(self) -> Node:
        left = self.pipeline()
        operator = self.take(*OPERATORS)
        return Compare(operator, left, self.pipeline()) if operator else left

    def pipeline(self) -> Node:
        source, stages = self.deeper(self.source), []
        while self.take("|"):
            stages.append(self.stage())
        return Pipe(source, tuple(stages)) if stages else source

    def source(self) -> Node:
        if self.take("("):
            inner = self.query()
            self.need(")")
            return inner
        if self.token.kind == "name" and self.token.text not in CONSTANTS:
            return self.call()
        return Value(self.value())

    def call(self) -> Node:
        name = self.token.text
        if name not in FUNCTIONS:
            self.fail("a function of the API")
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise QueryError(f"the query has more than {MAX_CALLS} calls")
        self.at += 1
        self.need("(")
        arguments: list[tuple[str | None, Node]] = []
        while not self.take(")"):
            if arguments:
                self.need(",")
            arguments.append(self.argument())
        return CallNode(name, tuple(arguments))

    def argument(self) -> tuple[str | None, Node]:
        name = None
        if self.token.kind == "name" and self.tokens[self.at + 1].text == ":":
            name = self.token.text
            self.at += 2
        return name, self.pipeline()

    def value(self) -> Any:
        token = self.token
        if token.kind == "sign" and self.take("["):
            items = [self.deeper(self.value)]
            while self.take(","):
                items.append(self.deeper(self.value))
            self.need("]")
            return tuple(items)
        if not (token.kind in ("text", "number") or token.text in CONSTANTS):
            self.fail("a call or a value")
        self.at += 1
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
        return CONSTANTS[token.text] if token.kind == "name" else json.loads(_number(token.text))

    def stage(self) -> Stage:
        name = self.token.text if self.token.kind == "name" else ""
        if name not in STAGES:
            self.fail(f"a stage ({', '.join(STAGES)})")
        self.at += 1
        return STAGES[name](self, name)

    def pathed(self, name: str) -> Stage:
        path = self.path()
        order = self.take("asc", "desc") if name == "sort" else None
        return Stage(name, path, descending=order == "desc")

    def reduced(self, name: str) -> Stage:
        return Stage(name, self.path() if self.token.kind in ("name", "text", "number") else ())

    def numbered(self, name: str) -> Stage:
        if self.token.kind != "number":
            return Stage(name)
        if not self.token.text.isdigit():
            self.fail("a whole number")
        self.at += 1
        return Stage(name, number=int(self.tokens[self.at - 1].text))

    def where(self, name: str) -> Stage:
        return Stage(name, test=self.condition())

    def bare(self, name: str) -> Stage:
        return Stage(name)

    def condition(self) -> Test:
        return self.joined("any", "or", lambda: self.joined("all", "and", lambda: self.deeper(self.test)))

    def joined(self, operator: str, word: str, rule: Callable[[], Test]) -> Test:
        parts = [rule()]
        while self.take(word):
            parts.append(rule())
        return parts[0] if len(parts) == 1 else Test(operator, parts=tuple(parts))

    def test(self) -> Test:
        if self.take("not"):
            return Test("not", parts=(self.deeper(self.test),))
        if self.take("("):
            inner = self.condition()
            self.need(")")
            return inner
        path, operator = self.path(), self.need(*OPERATORS, "contains")
        return Test(operator, path, self.value())

    def path(self) -> tuple[str, ...]:
        parts = [self.part()]
        while self.take("."):
            parts.append(self.part())
        return tuple(parts)

    def part(self) -> str:
        token = self.token
        if token.kind not in ("name", "text", "number"):
            self.fail("a field")
        self.at += 1
        return token.text[1:-1] if token.kind == "text" else token.text


STAGES: dict[str, Callable[[_Parser, str], Stage]] = {
    "get": _Parser.pathed,
    "where": _Parser.where,
    "sort": _Parser.pathed,
    "count": _Parser.bare,
    "unique": _Parser.bare,
    "first": _Parser.numbered,
    "last": _Parser.numbered,
    "min": _Parser.reduced,
    "max": _Parser.reduced,
    "sum": _Parser.reduced,
    "mean": _Parser.reduced,
}


def _number(text: str) -> str:
    """A number as JSON writes it: no zeros in front."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, dot, rest = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{dot}{rest}"
