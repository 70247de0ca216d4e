"""Lookups asked by a method: served in one batch, journalled, and failing alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Lookup, lookup
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.plugin.engine import run


def eps_of(query: Query) -> Plan[Answer]:
    """Answers with the earnings per share of the ticker that the question is."""
    value = yield from lookup("finance_get_eps", ticker_name=query.text)
    return Answer(str(value))


class Counting:
    """A graph that keeps what it was asked, in batches."""

    fingerprint = "counting"

    def __init__(self) -> None:
        self.batches: list[list[Lookup]] = []

    def call(self, calls: Sequence[Lookup]) -> list[Any]:
        self.batches.append(list(calls))
        return [CallError("down") if dict(c.arguments)["ticker_name"] == "BAD" else 1.5 for c in calls]


def test_a_method_looks_up_in_the_demo_graph(demo_folder: Path, graph: EmbeddedGraph, ask: Any) -> None:
    ((answer, trace),) = run(eps_of, ["VLMR"], kg=demo_folder)
    assert answer.text == str(ask(graph, "finance_get_eps", ticker_name="VLMR"))
    (step,) = trace.steps
    assert (step.ask, step.request, step.reply) == ("Lookup", "finance_get_eps(ticker_name='VLMR')", answer.text)


def test_questions_meet_in_one_batch_equal_calls_once_and_failures_alone(tmp_path: Path) -> None:
    counting = Counting()
    questions = ["A", "BAD", "A", "B"]
    results = run(eps_of, questions, kg=counting, journal=tmp_path / "j.sqlite")
    assert [[dict(c.arguments)["ticker_name"] for c in batch] for batch in counting.batches] == [["A", "BAD", "B"]]
    assert [answer.text for answer, _ in results] == ["1.5", "", "1.5", "1.5"]
    assert [trace.failure for _, trace in results] == [None, "down", None, None]
    again = run(eps_of, questions, kg=counting, journal=tmp_path / "j.sqlite")
    assert [dict(c.arguments)["ticker_name"] for c in counting.batches[1]] == ["BAD"]  # a failure is not kept
    assert [trace.steps[0].journalled for _, trace in again if trace.steps] == [True] * 3


def test_without_a_graph_the_ask_is_named() -> None:
    with pytest.raises(UserError, match="needs Lookup"):
        run(eps_of, ["A"])


def test_a_call_that_does_not_exist_fails_its_question_alone(demo_folder: Path) -> None:
    def method(query: Query) -> Plan[Answer]:
        value = yield from lookup(query.text, ticker_name="VLMR")
        return Answer(str(value))

    (_, bad), (good, _) = run(method, ["os_system", "finance_get_pe_ratio"], kg=demo_folder)
    assert "Unknown function" in str(bad.failure) and float(good.text) > 0
