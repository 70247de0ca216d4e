"""Optional packages: what is missing is named with the extra that brings it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from lm_eval_rag.harness.common.errors import UserError


def need(what: str, extra: str, *modules: str, besides: str = "") -> None:
    """Raise a UserError that names the extra unless all modules can be imported; imports none of them.

    Args:
        besides: What else there is to do, when the extra alone does not do it.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UserError(
            f"{what} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed. "
            f'Install with `pip install "lm-eval-rag[{extra}]"`{besides}.'
        )


def versions(*distributions: str) -> str:
    """``name=version`` of each distribution, joined by commas; those that are not installed are left out."""
    found = []
    for name in distributions:
        try:
            found.append(f"{name}={version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
