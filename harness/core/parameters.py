"""A method's keyword parameters are the model's ``--model_args``: known names, matching types, checked before a run."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.contract import check_method, function_of, name_of

Method = TypeVar("Method", bound=Callable[..., Any])
Positive = Annotated[int, Ge(1)]
Depth = Annotated[int, Ge(1), Le(10_000)]  # of a ranking: a run keeps every passage, so more would fill the memory
Natural = Annotated[int, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]  # also a probability or a similarity
HOW = "how"  # in an annotation: the parameter says how calls are made, not what comes of them
NonNegative = Annotated[float, Ge(0)]  # such as a temperature
AtLeastOne = Annotated[float, Ge(1)]  # such as a perplexity
Seconds = Annotated[float, Gt(0)]

# What runs a method besides its parameters, and the beginning of the options that belong to it alone.
OPTIONS_OF = {"retriever": "retriever_", "generator": "gen_"}
DECODING = ("gen_extractive",)  # how a method decodes, with whichever generator
RENAMED = {"wording": "prompt_file"}  # old name of a parameter -> its name today

# How a message says what is allowed: by type, and by bound.
TYPES = {int: "a whole number", float: "a number", bool: "True or False", str: "a text", NoneType: "None"}
BOUNDS = {"ge": "of {} or more", "gt": "above {}", "le": "of {} or less", "lt": "below {}"}


def defaults(method: Callable[..., Any]) -> dict[str, Any]:
    """The method's parameters with their defaults, in order."""
    keywords = inspect.signature(method).parameters.values()
    return {p.name: p.default for p in keywords if p.kind is inspect.Parameter.KEYWORD_ONLY}


def runs_with(**preset: Any) -> Callable[[Method], Method]:
    """A method's own defaults for what runs it: ``@runs_with(retriever="static", retriever_adapter="rgft")``."""

    def mark(method: Method) -> Method:
        method.runs_with = preset  # type: ignore[attr-defined]
        return method

    return mark


def variant(method: Method, name: str, **others: Any) -> Method:
    """A copy of a method that goes by another name and has other defaults; ``runs_with`` may then mark it.

    Of a decorated method the function is copied and decorated again, by what the decorator left as ``decorated_by``.

    Raises:
        UserError: A name the method does not know.
    """
    check_method(method)
    bind(method, others)
    decorate: Callable[[Any], Method] | None = getattr(method, "decorated_by", None)
    if decorate is not None:
        inner = variant(cast(FunctionType, method).__wrapped__, name, **others)  # type: ignore[attr-defined]
        return _as_prepared(decorate(inner), method)
    copy = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
    copy.__kwdefaults__ = {**(method.__kwdefaults__ or {}), **others}
    copy.__annotations__, copy.__doc__ = method.__annotations__, method.__doc__
    return _as_prepared(cast(Method, copy), method)


def _as_prepared(copy: Method, method: Method) -> Method:
    """The copy with the method's preparation (:mod:`lm_eval_rag.harness.core.preparing`), if it has one."""
    if hasattr(method, "preparation"):
        copy.preparation = method.preparation  # type: ignore[attr-defined]
    return copy


def preset_of(method: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the method runs with where ``given`` says nothing.

    A retriever that the user names leaves none of the preset's ``retriever_*`` options, unless it is the preset's own;
    so do generators with ``gen_*``, but for how they decode.
    """
    preset: dict[str, Any] = dict(getattr(method, "runs_with", {}))
    for kind, prefix in OPTIONS_OF.items():
        if kind in given and given[kind] != preset.get(kind):
            own = {key for key in preset if key == kind or key.startswith(prefix)} - {*DECODING}
            preset = {key: value for key, value in preset.items() if key not in own}
    return preset


def bind(method: Callable[..., Any], given: Mapping[str, Any], others: tuple[str, ...] = ()) -> Callable[..., Any]:
    """The method with its parameters set.

    Args:
        given: Parameter values by name.
        others: Names that belong to the model rather than the method, for the message.

    Raises:
        UserError: A name the method does not know, or a value of another type or out of range.
    """
    known, hints = defaults(method), hints_of(method)
    for name, value in given.items():
        if name not in known:
            raise _unknown(name, known, others)
        check(name, value, hints[name])
    return partial(method, **given)


def deciding(method: Callable[..., Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a method's parameters that may change an answer: all but the ones annotated with ``HOW``."""
    hints = hints_of(method)
    return {name: value for name, value in parameters.items() if HOW not in getattr(hints[name], "__metadata__", ())}


def _unknown(name: str, known: Mapping[str, Any], others: tuple[str, ...]) -> UserError:
    if RENAMED.get(name) in known:
        return UserError(f"{name}= is now named {RENAMED[name]}=. Write {RENAMED[name]}=... with the same value.")
    return unknown("argument", name, [*known, *others])


def hints_of(method: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a method's parameters by name, with their bounds.

    Raises:
        UserError: They name what its file does not import.
    """
    try:
        return get_type_hints(function_of(method), include_extras=True)
    except NameError as error:
        raise UserError(
            f"The annotations of {name_of(method)!r} cannot be read: {error}. Import what they name at the top of its "
            "file, not under TYPE_CHECKING."
        ) from None


def check(name: str, value: Any, hint: Any) -> None:
    """Raise a UserError unless ``value`` is what the annotation ``hint`` allows; nothing is converted.

    Numbers are finite: no comparison with nan is true, and JSON has neither nan nor infinity.
    """
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter = TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False))
    except PydanticUserError:  # a dataclass or a model, which brings its own configuration
        adapter = TypeAdapter(hint)
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError:
        raise _not_allowed(name, value, hint) from None


def _not_allowed(name: str, value: Any, hint: Any) -> UserError:
    options = [part for part in get_args(hint) if part is not NoneType] if _is_union(hint) else [hint]
    if all(get_origin(option) is Literal for option in options):
        return unknown(f"value of {name}", str(value), [str(one) for option in options for one in get_args(option)])
    advice = ""
    if isinstance(value, float):
        if not math.isfinite(value):
            advice = " It must be finite."
        elif _is_number(value, hint):
            advice = f" Write {int(value)} with digits alone."
    return UserError(f"{name}={value!r} is not allowed: give {in_words(hint)}.{advice}")


def _is_number(value: float, hint: Any) -> bool:
    """Whether a decimal number would be allowed if it were written as a whole one: ``1e3`` for 1000."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(hint).validate_python(value)
    except ValidationError:
        return False
    return True


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def in_words(hint: Any) -> str:
    """An annotation in words: ``a whole number of 1 or more``."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [words.format(value) for name, words in BOUNDS.items() for value in _bound(parts[1:], name)]
        return " ".join([in_words(parts[0]), " and ".join(bounds)]).strip()
    if origin is Literal:
        return "one of " + ", ".join(map(str, parts))
    if _is_union(hint):
        return " or ".join(map(in_words, parts))
    return TYPES.get(hint, getattr(hint, "__name__", str(hint)) if origin is None else str(hint))


def _bound(metadata: tuple[Any, ...], name: str) -> list[Any]:
    return [value for one in metadata if (value := getattr(one, name, None)) is not None]
