"""What an evaluation is asked to compare: methods and systems of the user's, with names of the runs where given."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.loading import load_function, loaded_function
from lm_eval_rag.harness.core.contract import function_of, name_of
from lm_eval_rag.harness.plugin.model import RagLM, model_class
from lm_eval_rag.harness.systems.given import method_of_system

EXTERNAL, OWN_METHOD = "external", "rag"
LABEL = re.compile(r"[^=:/]+")  # an address and FILE.py:NAME are no labels
Method = str | Callable[..., Any]
Methods = Sequence[Method] | Mapping[str, Method] | Method
Find = Callable[[str], type[RagLM]]  # the lm_eval model of a name


@dataclass(frozen=True, slots=True)
class Chosen:
    """A method or a system.

    Args:
        model: Its lm_eval model class.
        named: The arguments that name it, such as ``function=``.
        label: The name of its runs; "" for the model's, with the arguments in which runs differ.
        is_system: Whether it is a system of the user's, which has no retriever and no generator of ours.
    """

    model: type[RagLM]
    named: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    is_system: bool = False


def chosen_methods(methods: Methods, find: Find) -> list[Chosen]:
    """What is compared, in order.

    Args:
        methods: Names, ``FILE.py:NAME``, ``external=FILE.py:NAME`` or ``external=http://...``, each with ``LABEL=``
            before it or not, in a list or joined by commas; functions; or such by the names of their runs.
        find: Gives the lm_eval model of a name.

    Raises:
        UserError: There is none, one is unknown, or one is neither a method nor a system.
    """
    if isinstance(methods, Mapping):
        chosen = [replace(_chosen(method, find), label=str(label)) for label, method in methods.items()]
    elif isinstance(methods, str):
        chosen = [_chosen(part.strip(), find) for part in methods.split(",") if part.strip()]
    else:
        chosen = [_chosen(method, find) for method in ([methods] if callable(methods) else methods)]
    if not chosen:
        raise UserError("There are no methods. Give at least one, such as standard_rag.")
    return chosen


def _chosen(method: Method, find: Find) -> Chosen:
    if not isinstance(method, str):
        return _of_function(method)
    name, named, target = method.partition("=")
    if named and target and name not in (EXTERNAL, OWN_METHOD) and LABEL.fullmatch(name):
        return replace(_chosen(target, find), label=name.strip())
    if (named and name not in (EXTERNAL, OWN_METHOD)) or (named and not target) or method == EXTERNAL:
        raise UserError(
            f"The method {method!r} is not allowed: give a method's name, FILE.py:NAME, external=FILE.py:NAME or "
            "external=http://ADDRESS; LABEL= before it names the run."
        )
    if name == EXTERNAL:
        url = re.match(r"https?://", target) is not None
        if not url:
            load_function(target, "function")  # a misspelt name ends it before any other run has begun
        return Chosen(find(EXTERNAL), {"url" if url else "function": target}, is_system=True)
    if named or method.endswith(".py") or ".py:" in method:
        _check_plan(load_function(target or method, "method").function, target or method)
        return Chosen(find(OWN_METHOD), {"method": target or method})
    return Chosen(find(method))


def _of_function(function: Any) -> Chosen:
    """A generator function is a method; any other function, or an object that can be called, is a system."""
    if not callable(function) or inspect.isclass(function):
        raise UserError(
            f"The method {function!r} is not allowed: give a name, a generator function (a method), or a function of a "
            "question that returns an answer (a system)."
        )
    if inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(function_of(function)):
        return Chosen(model_class(name_of(function), function))
    loaded = loaded_function(function)
    return Chosen(model_class(loaded.name, method_of_system(loaded)), is_system=True)


def _check_plan(function: Callable[..., Any], name: str) -> None:
    """Raise for a plain function, which is no method but a whole system."""
    written = function_of(function)
    if inspect.isfunction(written) and not inspect.isgeneratorfunction(written):
        raise UserError(
            f"{name} is a plain function; a method yields what it asks for. A function that takes a question and "
            "returns an answer is a system of your own: write external=FILE.py:NAME."
        )
