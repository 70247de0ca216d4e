"""The lm_eval model ``rag``: a method from any file or package, named by its argument ``method=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.loading import Loaded
from lm_eval_rag.harness.plugin.model import RagLM


class OwnMethodLM(RagLM):
    """``--model rag --model_args method=my.py:two_step,k=5``: a method from any file or package."""

    find: Callable[[str], Loaded]

    @classmethod
    def _method_of(cls, arguments: dict[str, Any]) -> tuple[str, Callable[..., Any]]:
        target = arguments.pop("method", None)
        if not isinstance(target, str) or not target:
            raise UserError(
                f"--model {cls.name} needs --model_args method=FILE.py:NAME (or PACKAGE.MODULE:NAME, or the name of a "
                "method that a package brings)."
            )
        loaded = cls.find(target)
        return loaded.identity, loaded.function


def own_method_class(name: str, find: Callable[[str], Loaded]) -> type[OwnMethodLM]:
    """The lm_eval model class of whatever method its argument ``method=`` names.

    Args:
        find: Loads a method by that argument.
    """
    body = {"name": name, "find": staticmethod(find), "__doc__": OwnMethodLM.__doc__, "__module__": __name__}
    return type(name, (OwnMethodLM,), body)
