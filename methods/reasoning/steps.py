"""What methods of several steps share: a limit of calls, how a step ends, abstentions, merged passages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, ParamSpec

from lm_eval_rag.harness.common.errors import CallError, TooLongError
from lm_eval_rag.harness.core.asks import Retrieve
from lm_eval_rag.harness.core.types import Answer, Passage, Plan
from lm_eval_rag.harness.core.watching import EndedError, calls_of, watched
from lm_eval_rag.harness.scoring.case import is_missing

P = ParamSpec("P")
DONT_KNOW = "I don't know"
STOP = ("\n\n\n", "\nQuestion:", "\nDocuments:")  # ends every step: models that go on would ask themselves
OVER = "max_calls reached"


def limited(method: Callable[P, Plan[Answer]]) -> Callable[P, Plan[Answer]]:
    """A method that abstains, with the note ``max_calls reached``, before it exceeds its parameter ``max_calls``.

    None is no limit beyond what the method's other parameters lead to. It is the default of all our methods: a number
    would contradict larger values of those.
    """
    default = inspect.signature(method).parameters["max_calls"].default

    @wraps(method)
    def bounded(*query: P.args, **parameters: P.kwargs) -> Plan[Answer]:
        most = parameters.get("max_calls", default)
        assert most is None or isinstance(most, int)
        plan = method(*query, **parameters)
        return (yield from (plan if most is None else within(plan, most)))

    bounded.decorated_by = limited  # type: ignore[attr-defined]
    return bounded


def within(plan: Plan[Answer], max_calls: int) -> Plan[Answer]:
    """The plan's answer, or an abstention with what it retrieved once it would make call ``max_calls`` + 1.

    A call is one sample of Generate, or one Loglikelihood: what costs. Other asks are free, and so are prompts that
    were not sent because they are too long. Plans that run together are counted as one.
    """
    left, retrieved = max_calls, list[Sequence[Passage]]()

    def before(ask: Any) -> None:
        nonlocal left
        left -= calls_of(ask)
        if left < 0:
            raise EndedError(OVER)

    def after(ask: Any, reply: Any) -> None:
        if isinstance(ask, Retrieve):
            retrieved.append(reply)

    def failed(ask: Any, error: CallError) -> None:
        nonlocal left
        if isinstance(error, TooLongError):
            left += calls_of(ask)

    try:
        return (yield from watched(plan, before, after, failed))
    except EndedError:
        return abstention(merged(retrieved), OVER)


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
