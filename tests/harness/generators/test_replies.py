"""What a server's reply says: the text, how it ended, thoughts apart, tokens; and what its errors ask for."""

import email.utils

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.generators.base import Completion, Decoding
from lm_eval_rag.harness.generators.network import GENERATOR, StatusError, problem_of, retry_after
from lm_eval_rag.harness.generators.replies import completion_of, local_completion
from lm_eval_rag.harness.generators.thinking import split_thinking


def reply(content, finish="stop", **message):
    return {"choices": [{"message": {"content": content, **message}, "finish_reason": finish}]}


def read(data, stops=(), **decoding):
    return completion_of(object(), data, Decoding(stop=tuple(stops), **decoding), 0.0)


@pytest.mark.parametrize(
    ("data", "text", "finish", "thinking"),
    [
        (reply("Paris"), "Paris", "stop", ""),
        (reply("Par", "length"), "Par", "length", ""),
        (reply("", "length"), "", "length", ""),
        (reply(None, "length", reasoning_content="hm"), "", "length", "hm"),
        (reply(None, "content_filter"), "", "content_filter", ""),
        (reply("Paris", reasoning_content="It is in France."), "Paris", "stop", "It is in France."),
        (reply("<think>\nFrance?\n</think>\n\nParis"), "Paris", "stop", "France?"),
        (reply("France?</think>Paris"), "Paris", "stop", "France?"),
        (reply("<think>France? Or", "length"), "", "length", "France? Or"),
        ({"choices": [{"text": "Paris", "finish_reason": "length"}]}, "Paris", "length", ""),
        (reply("", "stop"), "", "stop", ""),
    ],
)
def test_how_a_reply_is_read(data, text, finish, thinking):
    assert read(data) == Completion(text, finish, thinking)


def test_no_text_without_a_reason_is_a_failure():
    with pytest.raises(CallError, match="holds no text"):
        read(reply(None))


def test_stop_strings_in_thoughts_cut_nothing():
    assert read(reply("<think>a\nb</think>Paris\nLondon"), ["\n"]).text == "Paris"
    assert split_thinking("a < b") == ("", "a < b")


def test_thoughts_stay_where_they_are_asked_for():
    text = " <think>\na </think>\n\n<search> b "
    assert read(reply(text), thinking=True) == Completion(text, "stop")
    assert read(reply("<think>a\nb</think>"), ["\n"], thinking=True) == Completion("<think>a", "stop")
    assert local_completion(text, Decoding(thinking=True), "length", 3) == Completion(text, "length", "", None, 3)
    assert local_completion(text, Decoding()) == Completion("<search> b ", "", "a")


def test_a_thought_that_the_template_begins_and_the_limit_ends():
    """Nothing marks it, so that only who is known to think is not taken at its word."""
    data = reply("Okay, Paris?", "length")
    assert read(data) == Completion("Okay, Paris?", "length")
    thinks = completion_of(object(), data, Decoding(stop=()), 0.0, thinks=True)
    assert thinks == Completion("", "length", "Okay, Paris?")
    whole = completion_of(object(), reply("Okay.</think>Par", "length"), Decoding(stop=()), 0.0, thinks=True)
    assert whole == Completion("Par", "length", "Okay.")
    apart = completion_of(object(), reply("Par", "length", reasoning="Hm."), Decoding(stop=()), 0.0, thinks=True)
    assert apart == Completion("Par", "length", "Hm.")
    without = completion_of(object(), reply("Paris"), Decoding(stop=()), 0.0, thinks=True)
    assert without == Completion("Paris", "stop")
    assert split_thinking("<think>") == ("<think>", "")  # a thought without a word is one, too


def test_tokens_as_the_server_counted_them():
    data = {**reply("x"), "usage": {"prompt_tokens": 12, "completion_tokens": 3}}
    assert (read(data).prompt_tokens, read(data).completion_tokens) == (12, 3)


@pytest.mark.parametrize(
    "completion",
    [Completion("a"), Completion("", "length", "hm", 3, 4), Completion("a", "stop", completion_tokens=0)],
)
def test_a_completion_survives_the_journal(completion):
    assert Completion.from_json(completion.to_json()) == completion
    assert Completion.from_json("an old reply", 2.0) == Completion("an old reply", seconds=2.0)


def test_a_wait_in_each_form():
    now = 1_800_000_000.0
    date = email.utils.formatdate(now + 30, usegmt=True)
    waits = {"7": 7.0, "3.5": 3.5, date: 30.0, "": 0.0, "soon": 0.0, "-5": 0.0, "nan": 0.0, "999999": 600.0}
    assert {value: retry_after({"Retry-After": value}, now) for value in waits} == waits


@pytest.mark.parametrize(
    ("status", "transient", "hopeless", "overloaded"),
    [(500, 1, 0, 0), (429, 1, 0, 1), (503, 1, 0, 1), (400, 0, 0, 0), (401, 0, 1, 0), (402, 0, 1, 0), (404, 0, 1, 0)],
)
def test_what_a_status_means(status, transient, hopeless, overloaded):
    problem = problem_of(StatusError(status, "Reason", "text", {"Retry-After": "2"}))
    assert (problem.transient, problem.hopeless, problem.overloaded) == (transient, hopeless, overloaded)
    assert problem.retry_after == 2.0 and str(status) in problem.words


def test_no_message_repeats_a_key():
    problem = problem_of(StatusError(400, "Bad Request", "no such key: sk-123456", {}), ["sk-123456"])
    assert "sk-123456" not in GENERATOR.advice(problem) and "[key]" in problem.words
