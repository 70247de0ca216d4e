"""Log-probabilities in the replies of chat APIs: which tokens belong to the reply, and where there are none."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest

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


def test_tokens_and_the_likeliest_in_the_place_of_the_first_word() -> None:
    entries = [entry("\n", -0.5, (("\n", -0.5),)), entry("**", -0.1, (("**", -0.1),))]
    entries += [entry("Yes", -1.0, (("Yes", -1.0), ("No", -2.0))), entry("**", -0.1), entry(".", -3)]
    completion = read(reply("**Yes**.", entries))
    assert completion.tokens == (("**", -0.1), ("Yes", -1.0), ("**", -0.1), (".", -3.0))
    assert completion.first == (("Yes", -1.0), ("No", -2.0))
    stored = json.dumps(completion.to_json())
    assert json.dumps(Completion.from_json(json.loads(stored)).to_json()) == stored


@pytest.mark.parametrize("sent", ["Bo\nAl", "Bo"])
def test_what_a_stop_string_cuts_does_not_count(sent: str) -> None:
    """Whether the server has it in the text or not."""
    completion = read(reply(sent, [entry("Bo"), entry("\n"), entry("Al", -9.0)]), "\n", "Al")
    assert (completion.text, completion.tokens) == ("Bo", (("Bo", -1.0),))


@pytest.mark.parametrize("content", ["<think>Bo?</think> Al", " Al"])
@pytest.mark.parametrize("thinking", [True, False])
def test_thinking_counts_where_it_is_part_of_the_text(content: str, thinking: bool) -> None:
    """A server leaves it in the text or not; its tokens are among the others."""
    entries = [entry("<think>", -5), entry("Bo?"), entry("</", -5), entry("think>"), entry(" A", -2, ((" A", -2.0),))]
    completion = read(reply(content, [*entries, entry("l", -3)]), thinking=thinking)
    whole = thinking and "think" in content
    assert len(completion.tokens) == (6 if whole else 2)
    assert completion.tokens[-2:] == ((" A", -2.0), ("l", -3.0)) and (whole or completion.first == ((" A", -2.0),))


def test_an_answer_that_the_thinking_began_with() -> None:
    entries = [entry("Bo", -9), entry("? hm"), entry("</seed:think>"), entry("Bo", -0.1)]
    assert read(reply("Bo", entries)).tokens == (("Bo", -0.1),)


@pytest.mark.parametrize("end", ["", "<|im_end|>", "</s>", "[/INST]", " \n"])
def test_signs_around_a_turn(end: str) -> None:
    entries = [entry("<|channel|>", -7), entry("final"), entry("<|message|>"), entry("Bo"), entry(end)]
    assert read(reply("Bo", entries)).tokens == (("Bo", -1.0),)


def test_a_character_of_several_tokens() -> None:
    """A server names half a character as it likes; the bytes tell."""
    first, second = "é".encode()[:1], "é".encode()[1:]
    entries = [entry("caf"), entry("\\xc3", bytes=list(first)), entry("\\xa9", bytes=list(second))]
    assert read(reply("café", entries)).tokens == (("caf", -1.0), ("", -1.0), ("é", -1.0))


def test_half_a_pair_of_surrogates_can_be_stored() -> None:
    completion = read(reply("Bo \ud83d", [entry("Bo", -1.0, (("\ud83d", -2.0),)), entry(" \ud83d")]))
    assert completion.tokens == (("Bo", -1.0), (" ?", -1.0)) and completion.first == (("?", -2.0),)


@pytest.mark.parametrize(
    "entries",
    [
        None, [{"token": "Bo"}], [entry("Bo", float("nan"))], [entry("Bo", 10**400)], "Bo", [], [entry("Al")],
        [entry("Bo Reed")], [entry("Bo"), entry(" Reed")], [entry("B")], [entry("xBo")],
    ],
)  # fmt: skip
def test_none_or_those_of_another_text_are_none(entries: Any) -> None:
    completion = read(reply("Bo", entries))
    assert (completion.text, completion.tokens, completion.first) == ("Bo", (), ())


def test_a_reply_without_the_field_or_without_text() -> None:
    for content in ("Bo", " "):
        assert read({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}).tokens == ()


@pytest.mark.parametrize("seed", range(100))
def test_any_reply_after_any_thinking_cut_into_any_tokens(seed: int) -> None:
    """Of tokens that are cut where the reply begins, those of the reply: their number is counted independently."""
    rng = random.Random(seed)
    thinking, text = ("".join(rng.choice("ab \né") for _ in range(rng.randint(0, 12))) for _ in range(2))
    text = f"b{text}c"
    cuts = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(5))})
    tokens = [text[a:b] for a, b in pairwise(cuts)]
    completion = read(reply(text, [entry(thinking, -9.0), entry("</think>", -9.0), *map(entry, tokens)]))
    assert completion.tokens == tuple((token, -1.0) for token in tokens)
