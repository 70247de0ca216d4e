"""What methods of several steps share: a limit of calls, how a step ends, abstentions, merged passages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Generate, Loglikelihood, Retrieve, Together
from lm_eval_rag.harness.core.types import Answer, Passage, Plan
from lm_eval_rag.harness.scoring.case import is_missing

P = ParamSpec("P")
T = TypeVar("T")
DONT_KNOW = "I don't know"
STOP = ("\n\n\n", "\nQuestion:", "\nDocuments:")  # ends every step: models that go on would ask themselves
OVER = "max_calls reached"


def limited(method: Callable[P, Plan[Answer]]) -> Callable[P, Plan[Answer]]:
    """A method that abstains, with the note ``max_calls reached``, before it exceeds its parameter ``max_calls``."""
    default = inspect.signature(method).parameters["max_calls"].default

    @wraps(method)
    def bounded(*query: P.args, **parameters: P.kwargs) -> Plan[Answer]:
        most = parameters.get("max_calls", default)
        assert isinstance(most, int)
        return (yield from within(method(*query, **parameters), most))

    bounded.decorated_by = limited  # type: ignore[attr-defined]
    return bounded


def within(plan: Plan[Answer], max_calls: int) -> Plan[Answer]:
    """The plan's answer, or an abstention with what it retrieved once it would make call ``max_calls`` + 1.

    A call is one sample of Generate, or one Loglikelihood: what costs. Other asks are free. Plans that run together
    are counted as one.
    """
    budget = _Budget(max_calls)
    try:
        return (yield from budget.counted(plan))
    except _OverError:
        return abstention(merged(budget.retrieved), OVER)


class _OverError(CallError):
    """A call more than is allowed."""


@dataclass(slots=True)
class _Budget:
    """The calls that are left, and what was retrieved so far."""

    left: int
    retrieved: list[Sequence[Passage]] = field(default_factory=list)

    def counted(self, plan: Plan[T]) -> Plan[T]:
        """The plan, as far as its calls go."""
        reply: Any = None
        while True:
            try:
                ask = plan.throw(reply) if isinstance(reply, CallError) else plan.send(reply)
            except StopIteration as stop:
                value: T = stop.value
                return value
            self.left -= ask.n if isinstance(ask, Generate) else isinstance(ask, Loglikelihood)
            if self.left < 0:
                plan.close()
                raise _OverError(OVER)
            if isinstance(ask, Together):
                ask = Together(tuple(map(self.counted, ask.plans)))
            try:
                reply = yield ask
            except _OverError:  # of one of the plans together: it ends all
                plan.close()
                raise
            except CallError as error:  # the plan may know what to do
                reply = error
            else:
                if isinstance(ask, Retrieve):
                    self.retrieved.append(reply)


def abstention(passages: Sequence[Passage] = (), *notes: str) -> Answer:
    """``I don't know``, with the reason among its notes."""
    return Answer(DONT_KNOW, tuple(passages), abstained=True, notes=tuple(dict.fromkeys(notes)))


def final(
    text: str, passages: Sequence[Passage] = (), notes: Iterable[str] = (), rationale: str | None = None
) -> Answer:
    """The answer; a blank text, or one that says so, abstains."""
    if is_missing(text):
        return abstention(passages, *notes, *([] if text.strip() else ["blank answer"]))
    return Answer(text.strip(), tuple(passages), notes=tuple(dict.fromkeys(notes)), rationale=rationale)


def merged(lists: Iterable[Iterable[Passage]], most: int | None = None) -> tuple[Passage, ...]:
    """The first ``most`` passages of the lists one after the other, each once; all of them for None."""
    passages: dict[str, Passage] = {}
    for passage in (passage for ranking in lists for passage in ranking):
        passages.setdefault(passage.id, passage)
    return tuple(passages.values())[:most]
