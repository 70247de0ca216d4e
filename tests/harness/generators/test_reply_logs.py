"""Log-probabilities in the replies of chat APIs: which tokens belong to the reply, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.harness.generators.base import Completion, Decoding
from lm_eval_rag.harness.generators.replies import completion_of


def entry(token: str, log: float = -1.0, likeliest: tuple[tuple[str, float], ...] = (), **more: Any) -> dict[str, Any]:
    top = [{"token": text, "logprob": one} for text, one in likeliest]
    return {"token": token, "logprob": log, "top_logprobs": top, **more}


def reply(content: str, entries: Any, **message: Any) -> dict[str, Any]:
    choice = {"message": {"content": content, **message}, "finish_reason": "stop", "logprobs": {"content": entries}}
    return {"choices": [choice]}


def read(data: Any, *stop: str, thinking: bool = False) -> Completion:
    return completion_of(object(), data, Decoding(stop=stop, thinking=thinking), 0.0, logs=True)


def test_tokens_and_the_likeliest_in_the_place_of_the_first() -> None:
    entries = [entry("\n", -0.5, (("\n", -0.5),)), entry("Yes", -1.0, (("Yes", -1.0), ("No", -2.0))), entry(".", -3)]
    completion = read(reply("Yes.", entries))
    assert completion.tokens == (("\n", -0.5), ("Yes", -1.0), (".", -3.0))
    assert completion.first == (("Yes", -1.0), ("No", -2.0))  # a blank token before it is skipped
    assert Completion.from_json(completion.to_json()) == completion


def test_what_a_stop_string_cuts_does_not_count() -> None:
    completion = read(reply("Bo\nAl", [entry("Bo"), entry("\n"), entry("Al", -9.0)]), "\n")
    assert Written(completion.text, completion.tokens).log() == -1.0


@pytest.mark.parametrize("content", ["<think>Bo?</think> Al", " Al"])
def test_thinking_does_not_count(content: str) -> None:
    """Whether the server leaves it in the text or not; its tokens are among the others."""
    entries = [entry("<think>", -5), entry("Bo?"), entry("</", -5), entry("think>"), entry(" A", -2, ((" A", -2.0),))]
    completion = read(reply(content, [*entries, entry("l", -3)]))
    assert completion.tokens == ((" A", -2.0), ("l", -3.0)) and completion.first == ((" A", -2.0),)


def test_thinking_counts_where_it_is_part_of_the_text() -> None:
    entries = [entry("<think>"), entry("a"), entry("</think>"), entry("b")]
    assert len(read(reply("<think>a</think>b", entries), thinking=True).tokens) == 4


def test_a_character_of_several_tokens() -> None:
    """A server names half a character as it likes; the bytes tell."""
    first, second = "é".encode()[:1], "é".encode()[1:]
    entries = [entry("caf"), entry("\\xc3", bytes=list(first)), entry("\\xa9", bytes=list(second))]
    assert read(reply("café", entries)).tokens == (("caf", -1.0), ("", -1.0), ("é", -1.0))


def test_a_blank_reply_needs_none() -> None:
    assert read({"choices": [{"message": {"content": " "}, "finish_reason": "stop"}]}).tokens == ()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (None, "are missing"),
        ([{"token": "Bo"}], "are missing"),
        ([entry("Bo", float("nan"))], "are missing"),
        ("Bo", "are missing"),
        ([entry("Al")], "do not spell it"),
        ([], "do not spell it"),
    ],
)
def test_no_log_probabilities_or_those_of_another_text_are_a_failure(entries: Any, message: str) -> None:
    with pytest.raises(CallError, match=rf"{message}.*Leave out gen_logprobs=True"):
        read(reply("Bo", entries))


def test_a_reply_without_the_field_is_a_failure() -> None:
    with pytest.raises(CallError, match="are missing"):
        read({"choices": [{"message": {"content": "Bo"}, "finish_reason": "stop"}]})
