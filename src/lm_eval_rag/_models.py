"""The lm_eval models, one attribute a method: made when lm_eval asks for ``lm_eval_rag._models:rule_vote``."""

from __future__ import annotations

from typing import Any

from lm_eval_rag._register import MODELS, OWN, find_method, method_of


def __getattr__(name: str) -> Any:
    """The model class of the method ``name``; made once, so that it is the same class at every access."""
    if name not in MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lm_eval_rag.harness.plugin.model import model_class
    from lm_eval_rag.harness.plugin.own_method import own_method_class

    model = own_method_class(name, find_method) if name == OWN else model_class(name, method_of(name))
    globals()[name] = model
    return model


def __dir__() -> list[str]:
    return sorted({*globals(), *MODELS})
