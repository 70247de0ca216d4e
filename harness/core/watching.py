"""A plan that is watched: what it asks, and what it gets, in plans that run together too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.ask_types import Generate, Loglikelihood, Together
from lm_eval_rag.harness.core.types import Plan

T = TypeVar("T")


class EndedError(CallError):
    """Raised by who watches: it ends the plan and those around it, which cannot handle it."""


def watched(
    plan: Plan[T],
    before: Callable[[Any], None] = lambda ask: None,
    after: Callable[[Any, Any], None] = lambda ask, reply: None,
    failed: Callable[[Any, CallError], None] = lambda ask, error: None,
) -> Plan[T]:
    """The plan, unchanged for who runs it.

    Args:
        before: Is given each ask before it is made; what it raises ends the plan.
        after: Is given each ask that was served, with its reply.
        failed: Is given each ask that was not served, with its error.
    """
    reply: Any = None
    try:
        while True:
            try:
                ask = plan.throw(reply) if isinstance(reply, CallError) else plan.send(reply)
            except StopIteration as stop:
                value: T = stop.value
                return value
            before(ask)
            if isinstance(ask, Together):
                ask = Together(tuple(watched(part, before, after, failed) for part in ask.plans))
            try:
                reply = yield ask
            except EndedError:
                raise
            except CallError as error:  # the plan may know what to do
                failed(ask, error)
                reply = error
            else:
                after(ask, reply)
    finally:
        plan.close()


def calls_of(ask: Any) -> int:
    """The calls of the model that an ask makes: one for each sample of Generate, one for Loglikelihood, else none."""
    return ask.n if isinstance(ask, Generate) else int(isinstance(ask, Loglikelihood))
