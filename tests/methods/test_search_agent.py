"""The search agent: search calls, results, answers; in plain lines and in Search-R1's tags."""

from __future__ import annotations

import pytest

from lm_eval_rag.methods.search_agent import PROTOCOLS, _call, search_agent

QUESTION = "Who wrote the book that Ada Moss read?"


def test_plain_lines(play, documents):
    played = play(
        search_agent,
        ["I need the book.\nSearch: ada moss book\nResults: made up", documents("a", "b"),
         "Then its author.\n**Search:** author of a", documents("c", "a"), "It is clear.\nAnswer: Bo Reed\nmore"],
        k=2,
    )  # fmt: skip
    assert played.names == ["plain", "Retrieve", "plain", "Retrieve", "plain"]
    assert played.queries == ["ada moss book", "author of a"]
    second = played.prompts("plain")[1]
    assert "made up" not in second and "Search: ada moss book\nResults:\n1. a\n2. b" in second
    assert second.index(f"Question: {QUESTION}") < second.index("I need the book.")
    third = played.prompts("plain")[2]
    assert third.startswith(second.rstrip()) and third.rstrip().endswith("Results:\n1. c\n2. a")
    assert (played.answer.text, played.answer.notes) == ("Bo Reed", ())
    assert [passage.id for passage in played.answer.passages] == ["c", "a", "b"]  # the last search's first


def test_search_r1s_tags(play, documents):
    played = play(
        search_agent,
        ["<think>Which book?</think>\n<search> ada moss book ", documents("a"),
         "<think>Bo.</think><answer> Bo Reed </answer>"],
        protocol="search_r1",
    )  # fmt: skip
    assert played.queries == ["ada moss book"] and played.answer.text == "Bo Reed"
    assert played.asks[0][1].stop == ("</search>", "</answer>") and played.asks[1][1].k == 3
    second = played.prompts("search_r1")[1]
    turn = "<think>Which book?</think>\n<search> ada moss book</search>\n<information>\n1. a\n</information>"
    assert second.rstrip().endswith(turn)
    assert all(tag in second for tag in ("<think>", "</think>", "<answer>", "</answer>", "</information>"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_at_most_max_searches_then_the_answer(play, documents, protocol):
    search = {"plain": "Search: more", "search_r1": "<search>more"}[protocol]
    asked = play(search_agent, [*[search, documents("a")] * 2, " Bo Reed\n"], protocol=protocol, max_searches=2)
    assert asked.names == [protocol, "Retrieve"] * 2 + [protocol] and asked.answer.text == "Bo Reed"
    assert "There are no more searches." in asked.prompts(protocol)[-1]
    assert asked.prompts(protocol)[-1].endswith({"plain": "Answer:", "search_r1": "<answer>"}[protocol])
    default = play(search_agent, lambda name, ask: documents("a") if name == "Retrieve" else search, protocol=protocol)
    assert default.names.count("Retrieve") == 4 and default.answer.abstained and "no answer" in default.answer.notes


def test_no_search_at_all(play):
    played = play(search_agent, ["Answer: Bo"], max_searches=0)
    assert played.names == ["plain"] and played.answer.text == "Bo" and played.answer.passages == ()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_malformed_calls_are_told_and_counted(play, protocol):
    good = {"plain": "Answer: Bo", "search_r1": "<answer>Bo"}[protocol]
    bad = {"plain": "Let me see.\nSearch:   ", "search_r1": "<think>Hm.</think><search> </search>"}[protocol]
    played = play(search_agent, [bad, bad, good], protocol=protocol)
    assert played.names == [protocol] * 3
    assert played.answer.text == "Bo" and played.answer.notes == ("malformed call",)
    assert "could not be read" in played.prompts(protocol)[1] or "cannot be read" in played.prompts(protocol)[1]


def test_a_long_malformed_turn_is_cut(play):
    played = play(search_agent, ["word " * 1000, "Answer: Bo"])
    told = played.prompts("plain")[1].split("could not be read: ")[1]
    assert len(told) < 700


def test_empty_results_and_refusal(play, abstains):
    played = play(search_agent, ["Search: x", (), "Answer: I don't know"])
    assert "Results:\nnone" in played.prompts("plain")[1] and played.answer.abstained
    over = play(search_agent, ["Search: x", (), "Search: y", ()], max_calls=2)
    assert abstains(over.answer, "max_calls reached")


@pytest.mark.parametrize(
    ("protocol", "reply", "call"),
    [
        ("plain", "search: x\nanswer: y", ("search", "x")),
        ("plain", "I will search: the web", (None, "")),
        ("plain", "- **Answer**: Bo", ("answer", "Bo")),
        ("plain", "Research: x", (None, "")),
        ("search_r1", "<search>a\nb</search><answer>c</answer>", ("search", "a\nb")),
        ("search_r1", "<answer></answer><answer>c", ("answer", "c")),
        ("search_r1", "Search: x", (None, "")),
    ],
)
def test_reading_calls(protocol, reply, call):
    assert _call(reply, PROTOCOLS[protocol]) == call
