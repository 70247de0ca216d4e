"""The models: our methods, and ``rag``, which runs a method of any file."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from lm_eval_rag._register import METHODS, MODELS, OWN, find_method, method_of
from lm_eval_rag.describe.description import Argument, Description
from lm_eval_rag.describe.docstrings import read_docstring
from lm_eval_rag.describe.signatures import arguments_of
from lm_eval_rag.harness.core.parameters import preset_of
from lm_eval_rag.harness.plugin.shared_arguments import SHARED

DEMO = "ruleqa_demo"
CRAG = "crag_demo"


def shared() -> tuple[Argument, ...]:
    """The arguments of every model."""
    return tuple(Argument(name, one.type, one.default, one.meaning) for name, one in SHARED.items())


def models() -> tuple[str, ...]:
    """The names of all models."""
    return MODELS


def model(name: str) -> Description:
    """A model by name, or a method as ``find_method`` takes it.

    Raises:
        UserError: There is none.
    """
    if name == OWN:
        return _own()
    if name in METHODS:
        method = method_of(name)
        module = import_module(METHODS[name].partition(":")[0])
        return _described(name, method, inspect.getdoc(module), _usage(name))
    loaded = find_method(name)
    module = sys.modules[loaded.function.__module__]
    usage = f"lm_eval --tasks {DEMO} --model {OWN} --model_args method={name}"
    return _described(loaded.name, loaded.function, inspect.getdoc(module), usage)


def _usage(name: str) -> str:
    if name == "external":
        return f"lm_eval --tasks {DEMO} --model external --model_args function=my.py:answer"
    return f"lm_eval --tasks {CRAG if name.startswith('crag') else DEMO} --model {name}"


def _described(name: str, method: Callable[..., Any], docstring: str | None, usage: str) -> Description:
    of_module, of_function = read_docstring(docstring), read_docstring(inspect.getdoc(method))
    preset = ",".join(f"{key}={value}" for key, value in preset_of(method, {}).items())
    prepared = hasattr(method, "preparation")
    facts = {
        "runs with": f"{preset}, unless you say otherwise" if preset else "",
        "preparation": "reads the whole corpus before the first question, and stores the product" if prepared else "",
    }
    return Description(
        kind="model",
        name=name,
        summary=of_module.summary or of_function.summary,
        usage=usage,
        text=of_module.text,
        sources=of_module.papers,
        departures=of_module.departures,
        arguments=arguments_of(method),
        shared=shared(),
        notes=tuple((title, text) for title, text in facts.items() if text),
    )


def _own() -> Description:
    method = Argument("method", "a text", "", "FILE.py:NAME, PACKAGE.MODULE:NAME, or the name of a method.")
    return Description(
        kind="model",
        name=OWN,
        summary="A method from any file or package.",
        usage=f"lm_eval --tasks {DEMO} --model {OWN} --model_args method=my.py:two_step,k=5",
        text=("Its other arguments are those of the method. `lm-eval-rag new method NAME` writes one to begin with.",),
        arguments=(method,),
        shared=shared(),
    )
