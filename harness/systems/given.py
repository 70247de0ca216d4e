"""A function object of the user's as a method, for evaluations in Python; ``external`` takes it by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lm_eval_rag.harness.common.loading import Loaded
from lm_eval_rag.harness.core.asks import System, ask_system
from lm_eval_rag.harness.core.parameters import Positive, Seconds
from lm_eval_rag.harness.core.types import Answer, Plan, Query


def method_of_system(loaded: Loaded) -> Callable[..., Any]:
    """The method that asks a function for its whole answer."""

    def system(
        query: Query, *, batch: Positive = 1, concurrency: Positive = 8, timeout: Seconds = 300.0
    ) -> Plan[Answer]:
        """Answer as the function does; the parameters are those of ``external``."""
        return (yield from ask_system(System(loaded, batch=batch, concurrency=concurrency, timeout=timeout)))

    system.__name__ = loaded.name
    return system
