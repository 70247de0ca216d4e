"""Expressions that a model wrote: arithmetic, comparisons, a few functions, dates.

The paper's system hands them to Python's ``eval`` (arXiv:2408.05141, section 4.3) and names the danger. Here Python's
parser only makes a syntax tree; nothing is compiled or executed. Every node of the tree must be in :data:`ALLOWED`,
every name in :mod:`.calculate_values`, and length, depth and the size of every number are limited.

Allowed are numbers, texts, ``True``, ``False``, lists, tuples, items of lists (``[1, 2][-1]``), ``+ - * / // % **``,
comparisons (also ``1 < 2 < 3``), ``and``, ``or``, ``not`` and ``a if b else c`` of comparisons, the functions in
:data:`.calculate_values.FUNCTIONS`, ``.year``, ``.month``, ``.day`` of a date and ``.days`` of a difference of dates.
They mean what they mean in Python, except that ``date("2024-02-28")`` reads a text and that a whole number may begin
with 0. :mod:`.calculate_lines` reads other notations first.
Other names and syntax, arithmetic on texts and numbers above 1e30 are refused with a reason of
:data:`.calculate_values.REASONS`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from lm_eval_rag.harness.core.calculate_values import (
    COMPARISONS,
    FIELDS,
    FUNCTIONS,
    OPERATORS,
    CalculationError,
    Value,
    bounded,
    fit,
    item,
    number,
    power,
)

MAX_LENGTH = 500  # characters
MAX_DEPTH = 24  # of brackets within each other; also of everything else but the left side of an operator

# Possessive throughout: a text is split in one way or not at all, in linear time.
TEXT = r"""(?<!\w)(?:"[^"\\\n]*+"|'[^'\\\n]*+')(?!\s*+["'])"""  # no prefix, no escape, no text right after it
NUMBER = r"(?<!\w)(?:[0-9][0-9_]*+\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?+[0-9]{1,3}+)?+(?!\w)"
TOKENS = re.compile(rf"(?:{TEXT}|{NUMBER}|[A-Za-z_][A-Za-z0-9_]*+|[-+*/%<>=!()\[\],. ])*+")
ZEROS = re.compile(rf"({TEXT})|(?<![\w.])0+(?=[0-9])")  # Python refuses 02, and models write date(2024, 02, 28)


def calculate(expression: str) -> Value:
    """The value of an expression.

    Raises:
        CalculationError: It is no such expression, is too large, or has no value.
    """
    if len(expression) > MAX_LENGTH:
        raise CalculationError("too long", f"{len(expression)} characters, at most {MAX_LENGTH} are read")
    try:
        return _value(_tree(expression))
    except ZeroDivisionError:
        raise CalculationError("division by zero") from None
    except OverflowError:
        raise CalculationError("too large") from None
    except TypeError as error:  # of Python's own operators, which only ever get the types of Value
        raise CalculationError("wrong type", str(error)) from None
    except RecursionError:
        raise CalculationError("too deep") from None


def _tree(expression: str) -> ast.expr:
    """The syntax tree, with every limit of length, depth and characters checked."""
    text = re.sub(r"\s", " ", expression).strip()
    if not text:
        raise CalculationError("empty")
    depth = [0]  # after each bracket
    for bracket in re.findall(r"[(\[\])]", re.sub(TEXT, "", text)):
        depth.append(depth[-1] + (1 if bracket in "([" else -1))
    if max(depth) > MAX_DEPTH:
        raise CalculationError("too deep", f"more than {MAX_DEPTH} brackets within each other")
    if min(depth) < 0 or text.endswith(",") or not TOKENS.fullmatch(text):
        raise CalculationError("not an expression")
    try:
        inside = ZEROS.sub(lambda match: match[1] or "", text)
        tree = ast.parse(f"[{inside}]", mode="eval").body  # within brackets, so that "1, 2" is not a tuple
    except (SyntaxError, ValueError, MemoryError) as error:
        raise CalculationError("not an expression", str(error)) from None
    if not isinstance(tree, ast.List) or len(tree.elts) != 1:
        raise CalculationError("not an expression", "needed is exactly one")
    nodes: list[tuple[ast.AST, int]] = [(tree.elts[0], 0)]
    for node, level in nodes:  # which grows
        if type(node) not in ALLOWED:
            raise CalculationError("not an expression", f"{type(node).__name__} is not allowed")
        if level > MAX_DEPTH:
            raise CalculationError("too deep", f"more than {MAX_DEPTH} within each other")
        left = getattr(node, "left", None)
        nodes += [(child, level + (child is not left)) for child in ast.iter_child_nodes(node)]
    return tree.elts[0]


def _value(node: ast.expr) -> Value:
    return NODES[type(node)](node)


def _constant(node: ast.Constant) -> Value:
    if not isinstance(node.value, int | float | str):
        raise CalculationError("unknown name", str(node.value))
    return bounded(node.value)


def _unary(node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return not _truth(node.operand)
    value = number(_value(node.operand))
    return -value if isinstance(node.op, ast.USub) else value


def _binary(node: ast.BinOp) -> Value:
    left, right = _value(node.left), _value(node.right)
    if isinstance(node.op, ast.Pow):
        return power(number(left), number(right))
    return bounded(OPERATORS[type(node.op)](*fit(left, right)))


def _comparison(node: ast.Compare) -> Value:
    values = [_value(part) for part in (node.left, *node.comparators)]
    return all(COMPARISONS[type(s)](a, b) for s, a, b in zip(node.ops, values, values[1:], strict=False))


def _choice(node: ast.IfExp) -> Value:
    value, condition, other = _value(node.body), _value(node.test), _value(node.orelse)
    if not isinstance(condition, bool):
        raise CalculationError("wrong type", "what follows 'if' is no comparison")
    return value if condition else other


def _truth(node: ast.expr) -> bool:
    value = _value(node)
    if not isinstance(value, bool):
        raise CalculationError("wrong type", "'and', 'or' and 'not' connect comparisons")
    return value


def _connected(node: ast.BoolOp) -> Value:
    """All parts are calculated, so that what is refused does not depend on the values before it."""
    values = [_truth(part) for part in node.values]
    return all(values) if isinstance(node.op, ast.And) else any(values)


def _item(node: ast.Subscript) -> Value:
    return item(_value(node.value), _value(node.slice))


def _items(node: ast.List | ast.Tuple) -> Value:
    return tuple(map(_value, node.elts))


def _field(node: ast.Attribute) -> Value:
    value = _value(node.value)
    fields = FIELDS.get(type(value), {})
    if node.attr not in fields:
        raise CalculationError("unknown name", f".{node.attr[:40]}")
    return fields[node.attr](value)


def _call(node: ast.Call) -> Value:
    name = ast.unparse(node.func)
    if name not in FUNCTIONS:
        raise CalculationError("unknown name", name[:40])
    return bounded(FUNCTIONS[name](tuple(map(_value, node.args))))


def _name(node: ast.Name) -> Value:
    raise CalculationError("unknown name", node.id[:40])


NODES: dict[type[ast.expr], Callable[[Any], Value]] = {
    ast.Constant: _constant,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _connected,
    ast.Compare: _comparison,
    ast.Subscript: _item,
    ast.IfExp: _choice,
    ast.List: _items,
    ast.Tuple: _items,
    ast.Attribute: _field,
    ast.Call: _call,
    ast.Name: _name,
}
ALLOWED = {*NODES, *OPERATORS, *COMPARISONS, ast.Pow, ast.USub, ast.UAdd, ast.Not, ast.And, ast.Or, ast.Load}
