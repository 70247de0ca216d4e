"""The search agent: search calls, results, answers; in plain lines and in Search-R1's tags."""

from __future__ import annotations

import re

import pytest

from lm_eval_rag.harness.common.errors import TooLongError
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.methods.search_agent import FORGOTTEN, LEFT_OUT, PROTOCOLS, _call, search_agent

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


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        ("The results say that Al directed it.\n\nAnswer: Al", "Al"),
        ("They say so. The answer is Al.", "Al"),
        (" Al\n\nThat is all.", "Al"),
        (" Al\nSearch: Al director", "Al"),
    ],
)
def test_an_answer_in_the_last_turn_is_not_lost(play, documents, last, answer):
    played = play(search_agent, ["Search: more", documents("a"), last], max_searches=1)
    assert played.answer.text == answer and played.asks[-1][1].stop == PROTOCOLS["plain"].stop


@pytest.mark.parametrize(
    ("reply", "call"),
    [
        ("Answer:\nAl", ("answer", "Al")),
        ("Search:\n\nAl film", ("search", "Al film")),
        ("- Final Answer: **Al**", ("answer", "Al")),
        ("2. Search: Al film", ("search", "Al film")),
        ("I need the film. Search: Al film", ("search", "Al film")),
        ("Answer： Al", ("answer", "Al")),
        ("Search:\nAnswer: Al", ("answer", "Al")),
        ("Answer: 5. Search: no", ("answer", "5. Search: no")),
        ("The answer: none yet", (None, "")),
        ("I should search: for Al", (None, "")),
        ("Research: Al", (None, "")),
        ("Search:", (None, "")),
    ],
)
def test_forms_of_plain_calls(reply, call):
    assert _call(reply, PROTOCOLS["plain"]) == call


def test_search_r1s_tags(play, documents):
    played = play(
        search_agent,
        ["<think>Which book?</think>\n<search> ada moss book ", documents("a", "b"),
         "<think>Bo.</think><answer> Bo Reed </answer>"],
        protocol="search_r1",
    )  # fmt: skip
    assert played.queries == ["ada moss book"] and played.answer.text == "Bo Reed"
    assert played.answer.rationale == "Which book? Bo."
    (_, ask), (_, retrieve), _ = played.asks
    assert (ask.stop, ask.max_tokens, ask.temperature) == (("</search>", "</answer>"), 500, 0.0) and retrieve.k == 3
    assert ask.thinking  # else a generator takes the thoughts out of the reply
    first, second = played.prompts("search_r1")
    turn = "<think>Which book?</think>\n<search> ada moss book </search>\n\n<information>1. a\n2. b</information>\n\n"
    assert second == first + turn and first.endswith(f"Question: {QUESTION}\n")
    assert all(tag in second for tag in ("<think>", "</think>", "<answer>", "</answer>", "</information>"))


@pytest.mark.parametrize(("question", "asked"), [("who wrote it", "who wrote it?"), (" who? ", "who?"), ("a.", "a.?")])
def test_search_r1_asks_with_a_question_mark(play, question, asked):
    """As its data are made: scripts/data_process/nq_search.py at commit a14dc3a."""
    played = play(search_agent, ["<answer>Bo"], query=Query("q", question), protocol="search_r1")
    assert played.prompts("search_r1")[0].endswith(f"Question: {asked}\n")
    plain = play(search_agent, ["Answer: Bo"], query=Query("q", question))
    assert plain.prompts("plain")[0].endswith(f"Question: {question.strip()}\n")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_at_most_max_searches_then_the_answer(play, documents, protocol):
    search = {"plain": "Search: more", "search_r1": "<search>more"}[protocol]
    last = {"plain": " Bo Reed\n", "search_r1": "<think>So.</think><answer>Bo Reed"}[protocol]
    asked = play(search_agent, [*[search, documents("a")] * 2, last], protocol=protocol, max_searches=2)
    assert asked.names == [protocol, "Retrieve"] * 2 + [protocol] and asked.answer.text == "Bo Reed"
    prompt = asked.prompts(protocol)[-1]
    if protocol == "plain":
        assert "There are no more searches." in prompt and prompt.endswith("Answer:")
    else:  # no word that its checkpoints have not read
        assert prompt.endswith("<search>more</search>\n\n<information>1. a</information>\n\n")
        assert asked.answer.rationale == "So."
    default = play(search_agent, lambda name, ask: documents("a") if name == "Retrieve" else search, protocol=protocol)
    assert default.names.count("Retrieve") == 4 and default.answer.abstained and "no answer" in default.answer.notes


@pytest.mark.parametrize("last", ["Bo Reed", "<think>Bo Reed</think>", "<search>more", "<answer> "])
def test_search_r1_without_an_answer_in_its_last_turn_has_none(play, documents, abstains, last):
    played = play(search_agent, ["<search>more", documents("a"), last], protocol="search_r1", max_searches=1)
    assert abstains(played.answer, "no answer") and played.names == ["search_r1", "Retrieve", "search_r1"]


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
    first, second, _ = played.prompts(protocol)
    if protocol == "plain":
        assert "could not be read" in second
    else:
        assert second.startswith(f"{first}{bad}\nThat action cannot be read.") and second.endswith("</answer>.\n")


def test_a_long_malformed_turn_is_cut(play):
    played = play(search_agent, ["word " * 1000, "Answer: Bo"])
    told = played.prompts("plain")[1].split("could not be read: ")[1]
    assert len(told) < 700


def test_empty_results_and_refusal(play, abstains):
    played = play(search_agent, ["Search: x", (), "Answer: I don't know"])
    assert "Results:\nnone" in played.prompts("plain")[1] and played.answer.abstained
    over = play(search_agent, ["Search: x", (), "Search: y", ()], max_calls=2)
    assert abstains(over.answer, "max_calls reached")


def narrow(documents, most, retrieved=("a", "b", "c")):
    """Replies of a model that takes prompts of at most ``most`` characters, and searches in every turn but the last."""
    found = iter(range(100))

    def reply(name, ask):
        if name == "Retrieve":
            return documents(*(f"{title}{next(found)} {'x' * 300}" for title in retrieved))
        text = ask.prompt.render()
        if len(text) > most:
            return TooLongError(f"{len(text)} characters")
        return "Bo Reed" if "no more searches" in text else f"Search: book {next(found)}"

    return reply


def test_a_long_transcript_loses_its_oldest_turns(play, documents):
    played = play(search_agent, narrow(documents, 2_600))
    asked = [text for text in played.prompts("plain") if len(text) <= 2_600]
    assert len(asked) == 5 and played.answer.text == "Bo Reed"
    assert played.answer.notes == (FORGOTTEN,) and len(played.answer.passages) == 12  # all that was read, as before
    turns = [re.findall(r"Search: (book \d+)", text) for text in asked]
    assert [len(part) for part in turns] == [0, 1, 2, 2, 2]
    assert turns[2][1] == turns[3][0] and turns[3][1] == turns[4][0]
    assert all(f"Question: {QUESTION}" in text for text in asked)


def test_the_last_turn_loses_its_lowest_ranked_results(play, documents):
    played = play(search_agent, narrow(documents, 800), max_searches=1)
    *_, sent = played.prompts("plain")
    assert "\n1. a" in sent and "2. b" not in sent and "Search: book" in sent
    assert (played.answer.text, played.answer.notes) == ("Bo Reed", (LEFT_OUT,))


def test_a_question_too_long_by_itself_stays_unscored(play, documents):
    with pytest.raises(TooLongError, match="characters"):
        play(search_agent, narrow(documents, 100))


def test_prompts_that_were_not_sent_are_no_calls(play, documents):
    played = play(search_agent, narrow(documents, 2_600), max_calls=5)
    assert played.calls > 5 and played.answer.text == "Bo Reed"  # five of the asks were answered


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
