"""Plans played with scripted replies: what was asked, in order and by name, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lm_eval_rag.harness.backends.calculation import CalculateBackend
from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Calculate, Classify, Generate, HasGraph, Lookup
from lm_eval_rag.harness.core.types import Passage, Query, WebPage
from lm_eval_rag.methods.crag.crag_prompts import _templates


@dataclass
class Played:
    """What a plan returned and what it asked."""

    result: Any
    asks: list[Any]

    @property
    def names(self) -> list[str]:
        """Each ask by name: of a generation its prompt's, of a lookup its function's, else its type's."""
        return [name_of(ask) for ask in self.asks]

    def prompt(self, name: str) -> str:
        """The one prompt of that name, as it is sent."""
        (ask,) = [ask for ask in self.asks if name_of(ask) == name]
        return str(ask.prompt.render())


def name_of(ask: Any) -> str:
    """Its name in a script."""
    if isinstance(ask, Generate):
        return next(name for name, template in _templates(None).items() if template == ask.prompt.template)
    if isinstance(ask, Lookup):
        return ask.function
    return f"classify {ask.attribute}" if isinstance(ask, Classify) else type(ask).__name__


@pytest.fixture(scope="session")
def play() -> Callable[..., Played]:
    """``play(plan, *replies)``: in order, each needed; a text is all samples; calculations and ``graph`` are served."""

    def run(plan: Any, *replies: Any, graph: bool = True) -> Played:
        asks: list[Any] = []
        left, reply = list(replies), None
        while True:
            try:
                ask = plan.throw(reply) if isinstance(reply, CallError) else plan.send(reply)
            except StopIteration as stop:
                assert not left, f"replies left over: {left}"
                return Played(stop.value, asks)
            asks.append(ask)
            if isinstance(ask, Calculate):
                reply = CalculateBackend().serve([(Query("q", ""), ask)])[0].value
                continue
            if isinstance(ask, HasGraph):
                reply = graph
                continue
            assert left, f"no reply left for {name_of(ask)}"
            reply = left.pop(0)
            if isinstance(ask, Generate) and isinstance(reply, str):
                reply = (reply,) * ask.n

    return run


@pytest.fixture(scope="session")
def query() -> Query:
    return Query("q1", "how much did the lantern film earn above its budget?", "2024-02-28T10:04:54-08:00", "demo/0#q1")


@pytest.fixture(scope="session")
def web() -> tuple[WebPage, ...]:
    """Two pages with text and tables, one with neither."""
    return (
        WebPage(0, "Lantern", "http://a", "", "", "The lantern film came out in 1994. It had a budget of 3 million. "
                "Its director was Odile. Who played in it? Casper did.",
                ("Page name: Lantern\n| year | gross |\n| --- | --- |\n| 1994 | 8 |",), ()),
        WebPage(1, "Empty", "http://b", "", "", "", (), ("empty page",)),
        WebPage(3, "Other", "http://c", "", "", "Salt is a mineral. It tastes of salt.",
                ("Page name: Other\n| salt | sea |\n| --- | --- |\n| 1 | 2 |",), ()),
    )  # fmt: skip


@pytest.fixture(scope="session")
def found() -> tuple[Passage, ...]:
    """What Retrieve replies."""
    return (Passage("0.0", "It had a budget of 3 million.", 2.0), Passage("3.0", "Salt is a mineral.", 1.0))


@pytest.fixture(scope="session")
def form() -> Callable[..., str]:
    """A reply in the reasoning module's form."""

    def made(answer: str, premise: str | None = "no", thoughts: str = "because") -> str:
        field = f"## False Premise:\n{premise}\n" if premise is not None else ""
        return f"===START===\n## Reasoning:\n- Is it?\n{thoughts}\n------\n## Answer:\n{answer}\n{field}"

    return made
