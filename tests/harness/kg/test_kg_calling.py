"""Function calling: schemas, answers of models read and checked, and what is run."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.kg.calling import MOST, Calls, facts_by_calls, listing, read_calls, signatures
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.kg.facts import Fact, json_values
from lm_eval_rag.harness.kg.functions import FUNCTIONS

EPS = Lookup("finance_get_eps", (("ticker_name", "VLMR"),))


def test_signatures_are_json_schemas_of_all_functions() -> None:
    tools = signatures()
    assert {tool["function"]["name"] for tool in tools} == set(FUNCTIONS)
    for tool in tools:
        schema = tool["function"]["parameters"]
        assert tool["type"] == "function" and tool["function"]["description"]
        assert set(schema["required"]) <= set(schema["properties"]) and schema["additionalProperties"] is False
    json.dumps(tools)
    assert len(signatures(["finance"])) == 9 and len(listing(["sports"]).splitlines()) == 3
    with pytest.raises(UserError, match="Unknown domain"):
        signatures(["weather"])


@pytest.mark.parametrize(
    "text",
    [
        '[{"function_name": "finance_get_eps", "args": ["VLMR"]}]',
        '{"name": "finance_get_eps", "arguments": {"ticker_name": "VLMR"}}',
        '{"function": "finance_get_eps", "parameters": {"query": "VLMR"}}',
        '{"type": "function", "function": {"name": "finance_get_eps", "arguments": "{\\"ticker_name\\": \\"VLMR\\"}"}}',
        '{"calls": [{"tool": "finance_get_eps", "params": "VLMR"}]}',
        'Sure! Here are the calls:\n```json\n[{"name": " finance_get_eps ", "args": ["VLMR"]}]\n``` {broken',
        '[{"name": "finance_get_eps", "args": ["VLMR"]}, {"name": "finance_get_eps", "args": ["VLMR"]}]',
    ],
)
def test_answers_in_many_forms_are_one_call(text: str) -> None:
    assert read_calls(text) == Calls((EPS,))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"name": "os.system", "args": ["ls"]}]', "Unknown function"),
        ('[{"name": "__class__", "args": []}]', "Unknown function"),
        ('[{"name": 7}]', "Not a call"),
        ("[1, null]", "Not a call"),
        ('[{"name": "finance_get_eps", "args": {"ticker_name": {"$gt": ""}}}]', "dict"),
        ('[{"name": "finance_get_eps", "args": {"self": "x", "ticker_name": "A"}}]', "no argument 'self'"),
        ('[{"name": "finance_get_eps"}]', "missing"),
        ('[{"name": "finance_get_eps", "args": ["' + "A" * 5_000 + '"]}]', "not allowed"),
        ('[{"name": "movie_get_movie_info_by_id", "args": [1e400]}]', "not allowed"),
        ('[{"name": "' + "x" * 9_000 + '"}]', "Unknown function"),
    ],
)
def test_calls_that_do_not_fit_are_refused_with_the_reason(text: str, said: str) -> None:
    found = read_calls(text)
    assert not found.calls and said in found.refused[0] and len(found.refused[0]) < 5_000


@pytest.mark.parametrize(
    "text",
    ["", "I don't know", "finance_get_eps('VLMR')", "[" * 100_000, "{" * 100_000, '{"a":' * 50_000, "[]", "\x00\ud800",
     '[{"name": "finance_get_eps", "args": ["VLMR"]'],
)  # fmt: skip
def test_answers_without_a_call_are_no_calls(text: str) -> None:
    assert not read_calls(text).calls


def test_their_number_is_bounded() -> None:
    asked = [{"name": "finance_get_eps", "args": [f"T{i}"]} for i in range(MOST + 3)]
    found = read_calls(json.dumps(asked))
    assert len(found.calls) == MOST and len(found.refused) == 3 and "more than" in found.refused[0]


def test_running_them_keeps_facts_and_failures(graph: EmbeddedGraph, drive: Callable[..., Any], ask: Any) -> None:
    calls = read_calls('[{"name": "finance_get_eps", "args": ["VLMR"]}, {"name": "nope"}, '
                       '{"name": "finance_get_eps", "args": ["NONE"]}]')  # fmt: skip
    found, asked = drive(facts_by_calls(calls), graph)
    assert asked == list(calls.calls)
    assert found.facts == (Fact("finance_get_eps(VLMR)", ask(graph, "finance_get_eps", ticker_name="VLMR")),)
    assert len(found.failures) == 1 and "Unknown function" in found.failures[0]
    missing = EmbeddedGraph(graph.folder / "open")
    found, _ = drive(facts_by_calls(calls), missing)
    assert not found.facts and "holds no" in found.failures[1]


def test_facts_as_text() -> None:
    assert Fact("a", {"x": "é"}).text() == 'a: {"x": "é"}'
    assert Fact("a", "word").text(4) == "a: w"


def test_json_in_text() -> None:
    assert list(json_values('x {"a": [1]} y [2] {"b": {"c": 3}} {')) == [{"a": [1]}, [2], {"b": {"c": 3}}]
    assert list(json_values("[1][2]", longest=3)) == [[1]]
