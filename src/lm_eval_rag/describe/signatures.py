"""The arguments of a function: names, types and defaults from its signature, meanings from its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lm_eval_rag.describe.description import Argument
from lm_eval_rag.describe.docstrings import read_docstring
from lm_eval_rag.harness.core.parameters import defaults, hints_of, in_words


def arguments_of(function: Callable[..., Any]) -> tuple[Argument, ...]:
    """The keyword parameters of a function; a parameter that its docstring leaves out has the meaning ""."""
    meanings = dict(read_docstring(inspect.getdoc(function)).parameters)
    hints = hints_of(function)
    return tuple(
        Argument(name, in_words(hints.get(name, Any)), written(default), meanings.get(name, ""))
        for name, default in defaults(function).items()
    )


def written(default: Any) -> str:
    """A default as it would be written on the command line; "" for None and for a parameter without one."""
    return "" if default is None or default is inspect.Parameter.empty else str(default)
