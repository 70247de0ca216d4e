"""A method's keyword parameters are the model's ``--model_args``: known names, matching types, checked before a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown


@dataclass(frozen=True, slots=True)
class Lowest:
    """The lowest value a whole number may have."""

    value: int


Method = TypeVar("Method", bound=Callable[..., Any])
Positive = Annotated[int, Lowest(1)]
Natural = Annotated[int, Lowest(0)]


def defaults(method: Callable[..., Any]) -> dict[str, Any]:
    """The method's parameters with their defaults, in order."""
    keywords = inspect.signature(method).parameters.values()
    return {p.name: p.default for p in keywords if p.kind is inspect.Parameter.KEYWORD_ONLY}


# What runs a method besides its parameters, and the beginning of the options that belong to it alone.
OPTIONS_OF = {"retriever": "retriever_", "generator": "gen_"}


def runs_with(**preset: Any) -> Callable[[Method], Method]:
    """A method's own defaults for what runs it: ``@runs_with(retriever="static", retriever_adapter="rgft")``."""

    def mark(method: Method) -> Method:
        method.runs_with = preset  # type: ignore[attr-defined]
        return method

    return mark


def variant(method: Method, name: str, **others: Any) -> Method:
    """A copy of a method that goes by another name and has other defaults; ``runs_with`` may then mark it.

    Raises:
        UserError: A name the method does not know.
    """
    bind(method, others)
    made = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
    made.__kwdefaults__ = {**(method.__kwdefaults__ or {}), **others}
    made.__annotations__, made.__doc__ = method.__annotations__, method.__doc__
    return cast(Method, made)


def preset_of(method: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the method runs with where ``given`` says nothing.

    A retriever that the user names leaves none of the preset's ``retriever_*`` options, unless it is the preset's own;
    so do generators with ``gen_*``.
    """
    preset: dict[str, Any] = dict(getattr(method, "runs_with", {}))
    for kind, prefix in OPTIONS_OF.items():
        if kind in given and given[kind] != preset.get(kind):
            preset = {key: value for key, value in preset.items() if key != kind and not key.startswith(prefix)}
    return preset


def bind(method: Callable[..., Any], given: Mapping[str, Any], others: tuple[str, ...] = ()) -> Callable[..., Any]:
    """The method with its parameters set.

    Args:
        given: Parameter values by name.
        others: Names that belong to the model rather than the method, for the message.

    Raises:
        UserError: A name the method does not know, or a value of another type or out of range.
    """
    known = defaults(method)
    hints = get_type_hints(method, include_extras=True)
    for name, value in given.items():
        if name not in known:
            raise unknown("argument", name, [*known, *others])
        check(name, value, hints[name])
    return partial(method, **given)


def check(name: str, value: Any, hint: Any) -> None:
    """Raise a UserError unless ``value`` is what the annotation ``hint`` allows."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        at_least(name, value, parts[1].value)
    elif origin is Literal:
        if value not in parts:
            raise unknown(f"value of {name}", str(value), map(str, parts))
    elif origin in (Union, UnionType):
        if value is not None or NoneType not in parts:
            check(name, value, next(part for part in parts if part is not NoneType))
    elif hint is float:
        _need(name, value, isinstance(value, (int, float)) and not isinstance(value, bool), "a number")
    elif hint is bool:
        _need(name, value, isinstance(value, bool), "True or False")
    elif hint is int:
        _need(name, value, isinstance(value, int) and not isinstance(value, bool), "a whole number")
    elif hint is str:
        _need(name, value, isinstance(value, str), "a text")


def _need(name: str, value: Any, fits: bool, allowed: str) -> None:
    if not fits:
        raise UserError(f"{name}={value!r} is not allowed: give {allowed}.")
