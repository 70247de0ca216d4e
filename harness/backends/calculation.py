"""Calculations; they are faster than the journal, so the journal is not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Calculate
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.calculate import calculate
from lm_eval_rag.harness.core.calculate_lines import expression_in
from lm_eval_rag.harness.core.calculate_values import Calculation, CalculationError, written
from lm_eval_rag.harness.core.types import Query, Step


@dataclass(frozen=True, slots=True)
class CalculateBackend:
    """Serves Calculate; a refused expression is a reply with the reason, and a step of the trace."""

    batch: int = 4096

    def serve(self, asked: Sequence[tuple[Query, Calculate]]) -> list[Served | CallError]:
        """The value of each expression, or why it was refused."""
        return [_served(ask.expression) for _, ask in asked]


def _served(expression: str) -> Served:
    began, read = perf_counter(), expression_in(expression)
    try:
        result = Calculation(read, written(calculate(read)))
        shown = result.value
    except CalculationError as error:
        result, shown = Calculation(read, refused=error.reason), f"refused: {error}"
    return Served(result, Step("Calculate", expression[:1000], shown, seconds=perf_counter() - began))
