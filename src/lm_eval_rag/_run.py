"""``lm_eval_rag.run``: a method by name, on one's own documents, without lm_eval."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lm_eval_rag._register import find_method
from lm_eval_rag.harness.core.parameters import preset_of
from lm_eval_rag.harness.core.types import Answer, Query, Trace
from lm_eval_rag.harness.generators.base import Generator
from lm_eval_rag.harness.plugin.engine import run as run_method


def run(
    method: str | Callable[..., Any],
    questions: Iterable[str | Query],
    *,
    generator: Generator | str | None = None,
    **options: Any,
) -> list[tuple[Answer, Trace]]:
    """Run a method on one's own questions.

    Args:
        method: Name of a method (``rulerag_icl``), ``FILE.py:NAME``, or a generator function of one's own.
        questions: Texts or queries.
        generator: A generator, or the name of one; None for the method's own, else ``tiny``. It is built only if the
            method asks for it.
        options: ``corpus``, ``rules``, ``examples``, ``retriever`` (with ``retriever_*``), ``kg``, ``journal``,
            ``decoding`` as in :func:`lm_eval_rag.harness.plugin.engine.run`, and the method's own parameters.

    Returns:
        (answer, trace) in the order of the questions.

    Raises:
        UserError: Unknown method or parameter, a method that breaks its contract, or an ask that nothing serves.
    """
    if isinstance(method, str):
        method = find_method(method).function
    generator = generator or preset_of(method, {}).get("generator", "tiny")
    return run_method(method, questions, generator=generator, **options)
