"""The demo graph, and how a plan of lookups is run on a graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.tasks.crag_demo.graph import write_graph
from lm_eval_rag.tasks.crag_demo.world import World, make_world


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(0)


@pytest.fixture(scope="session")
def demo_folder(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo_kg")
    write_graph(folder, world)
    return folder


@pytest.fixture(scope="session")
def graph(demo_folder: Path, cache: Path) -> EmbeddedGraph:
    return EmbeddedGraph(demo_folder)


@pytest.fixture(scope="session")
def ask() -> Callable[..., Any]:
    """``ask(graph, function, **arguments)``: the reply to one call."""

    def reply(graph: Any, function: str, **arguments: Any) -> Any:
        return graph.call([Lookup(function, tuple(arguments.items()))])[0]

    return reply


@pytest.fixture(scope="session")
def drive() -> Callable[..., tuple[Any, list[Lookup]]]:
    """``drive(plan, graph)``: what the plan returns, and the calls it made."""

    def run(plan: Any, graph: Any) -> tuple[Any, list[Lookup]]:
        calls: list[Lookup] = []
        reply: Any = None
        while True:
            try:
                failed = isinstance(reply, CallError)
                call = plan.throw(reply) if failed else plan.send(reply)
            except StopIteration as stop:
                return stop.value, calls
            assert isinstance(call, Lookup)
            calls.append(call)
            reply = graph.call([call])[0]

    return run
