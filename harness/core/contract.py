"""The contract of a method, checked where newcomers err: each mistake ends in one message that says how to mend it.

:func:`check_method` reads the signature, before anything runs. :func:`check_ask`, :func:`check_answer` and
:func:`check_error` look at what a method asks, returns and raises while it runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from types import GeneratorType
from typing import Any, get_args

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Ask, Together
from lm_eval_rag.harness.core.prompts import Prompt, Shot
from lm_eval_rag.harness.core.types import Answer, Passage, Rule

ASKS = get_args(Ask)
FIRST = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
LOOKED_INTO = frozenset((Prompt, Shot))
INNOCENT = frozenset((Passage, Rule, int, float, bool, type(None)))  # which hold no plan; most of what is looked at
FORMATTED = re.compile(r"<generator object (\S+) at 0x")  # a plan that was put into a text
KINDS = "int, float, bool, str, a Literal, or Depth, Natural and Positive of lm_eval_rag.harness.core.parameters"


def check_method(method: Callable[..., Any]) -> None:
    """Raise a UserError unless ``method`` is a generator function of a query and annotated keyword parameters."""
    name = name_of(method)
    if not (inspect.isgeneratorfunction(method) or inspect.isgeneratorfunction(function_of(method))):
        raise UserError(
            f"Method {name!r} is not a generator function: it has no `yield`, so it cannot ask. Write each ask as "
            "`passages = yield from retrieve(query.text, k)`. A method that only calls another ends with "
            "`return (yield from other(query))`; one that asks nothing begins with `yield from ()`."
        )
    parameters = list(inspect.signature(method).parameters.values())
    if not parameters or parameters[0].kind not in (*FIRST, inspect.Parameter.VAR_POSITIONAL):
        raise UserError(f"Method {name!r} takes no question. Write it as `def {name}(query: Query, *, ...)`.")
    for parameter in parameters[1:]:
        _check_parameter(name, parameters[0].name, parameter)


def _check_parameter(method: str, query: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in FIRST:
        raise UserError(
            f"Method {method!r} has its parameter {parameter.name!r} before the `*`, where it cannot be set. Write "
            f"`def {method}({query}, *, {_written(parameter)})`."
        )
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.annotation is parameter.empty:
        raise UserError(
            f"Method {method!r} has no annotation for its parameter {parameter.name!r}, so its values cannot be "
            f"checked. Write `{_written(parameter)}`; an annotation is {KINDS}."
        )


def _written(parameter: inspect.Parameter) -> str:
    """The parameter as it should be written; where it has no annotation, with that of its default."""
    default, hint = parameter.default, parameter.annotation
    default = None if default is parameter.empty else default
    if hint is parameter.empty:
        hint = "str | None" if default is None else type(default).__name__
    return f"{parameter.name}: {hint if isinstance(hint, str) else inspect.formatannotation(hint)} = {default!r}"


def check_ask(method: Callable[..., Any], ask: Any) -> None:
    """Raise a UserError unless ``ask``, which the method yielded, is an ask whose fields hold replies, not plans."""
    if isinstance(ask, GeneratorType):
        raise UserError(
            f"Method {name_of(method)!r} has `yield {ask.__name__}(...)`, which asks nothing. Write `yield from "
            f"{ask.__name__}(...)`."
        )
    if isinstance(ask, type) or not is_dataclass(ask):
        raise UserError(
            f"Method {name_of(method)!r} yields {_shown(ask)}, which is not an ask. Ask by the functions of "
            "lm_eval_rag.harness.core.asks, as in `passages = yield from retrieve(query.text, k)`."
        )
    if not isinstance(ask, Together):
        _check_fields(method, ask)
        return
    for plan in ask.plans:
        if not isinstance(plan, GeneratorType):
            raise UserError(
                f"Method {name_of(method)!r} gives together(...) {_shown(plan)}, which is not a plan. Give asks "
                "without `yield from`, as in `lists = yield from together(retrieve(text, k) for text in texts)`."
            )


def check_answer(method: Callable[..., Any], answer: Any) -> None:
    """Raise a UserError unless ``answer``, which the method returned, is an Answer that holds what it should."""
    name = name_of(method)
    if not isinstance(answer, Answer):
        raise UserError(
            f"Method {name!r} returns {_shown(answer)}, which is not an Answer. End it with `return Answer(text)`, or "
            "`return Answer(text, passages)` where it retrieves."
        )
    _check_fields(method, answer)
    if not isinstance(answer.text, str):
        raise UserError(f'Method {name!r} returns Answer(text={_shown(answer.text)}). Give a text; "" is no answer.')
    for field, values, kind in (("passages", answer.passages, Passage), ("rules", answer.rules or (), Rule)):
        wrong = [values] if not isinstance(values, Iterable) else [one for one in values if not isinstance(one, kind)]
        if wrong:
            raise UserError(
                f"Method {name!r} returns an Answer whose {field} hold {_shown(wrong[0])}. Give a tuple of "
                f"{kind.__name__}."
            )
    for field, items, types in (("evidence", answer.evidence, (str, int)), ("triples", answer.triples, (str,) * 3)):
        wrong = [] if items is None else [items] if not isinstance(items, tuple | list) else _not_of(items, types)
        if wrong:
            raise UserError(
                f"Method {name!r} returns an Answer whose {field} hold {_shown(wrong[0])}. Give a tuple of "
                f"({', '.join(kind.__name__ for kind in types)}), or None if the method predicts no {field}."
            )


def _not_of(items: Iterable[Any], types: tuple[type, ...]) -> list[Any]:
    """The items that are no tuples of exactly these types."""
    return [one for one in items if not isinstance(one, tuple | list) or tuple(map(type, one)) != types]


def check_error(method: Callable[..., Any], error: AttributeError | TypeError) -> None:
    """Raise a UserError if the method failed because it took the plan of an ask for its reply; else do nothing."""
    if isinstance(error, AttributeError):
        mistaken = isinstance(error.obj, (GeneratorType, *ASKS))
    else:
        mistaken = re.search(r"\bgenerator\b", str(error)) is not None
    if mistaken:
        raise UserError(
            f"Method {name_of(method)!r} uses an ask in place of its reply ({error}; {_place(error)}). Write `yield "
            "from` before the ask, as in `passages = yield from retrieve(query.text, k)`."
        ) from error


def name_of(method: Callable[..., Any]) -> str:
    """The name of a method, bound or not."""
    return str(getattr(function_of(method), "__name__", method))


def function_of(method: Callable[..., Any]) -> Callable[..., Any]:
    """The function that was written, without what binds or wraps it."""
    while isinstance(method, partial):
        method = method.func
    function: Callable[..., Any] = inspect.unwrap(method)
    return function


def _check_fields(method: Callable[..., Any], value: Any) -> None:
    plan = _plan_in(value)
    if plan is None:
        return
    place, ask = plan
    mend = (
        f"Write `yield from {ask}(...)`, which is the reply" if ask != "<genexpr>" else "Write `tuple(...)` around it"
    )
    raise UserError(f"Method {name_of(method)!r} puts a generator object into {place}. {mend}.")


def _plan_in(owner: Any) -> tuple[str, str] | None:
    """(field, name of the ask's function) of a plan that a value holds and that was never run; None without one."""
    for field in owner.__dataclass_fields__:
        value = getattr(owner, field)
        if type(value) in INNOCENT or (type(value) is str and "<generator object " not in value):
            continue
        values = value if isinstance(value, (tuple, list)) else (value,)
        if INNOCENT.issuperset(map(type, values)):
            continue
        for one in values:
            if (name := _plan_name(one)) is not None:
                return f"{type(owner).__name__}.{field}", name
            if type(one) in LOOKED_INTO and (inner := _plan_in(one)) is not None:
                return inner
    return None


def _plan_name(value: Any) -> str | None:
    """The name of the ask's function if the value is its plan, or a text that a plan was put into."""
    if isinstance(value, GeneratorType):
        return value.__name__
    formatted = FORMATTED.search(value) if isinstance(value, str) and "<generator object " in value else None
    return formatted[1] if formatted else None


def _place(error: Exception) -> str:
    """``file.py, line 12``: where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "no traceback"


def _shown(value: Any) -> str:
    """A value with its type, on one line."""
    if value is None:
        return "None"
    text = repr(value)
    return f"{text[:60] + '...' if len(text) > 60 else text} (a {type(value).__name__})"
