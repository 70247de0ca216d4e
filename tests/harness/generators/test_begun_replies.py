"""A reply that a prompt begins: where it stands for each kind of model, as the model reads it."""

from __future__ import annotations

import json
import logging

import pytest

from lm_eval_rag.harness.core.prompts import Messages
from lm_eval_rag.harness.generators.base import Completion, Decoding
from lm_eval_rag.harness.generators.chat import as_chat, warn_of_replies
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.local import Continuation
from lm_eval_rag.harness.generators.spec import ModelSpec

BEGUN = Messages("", "who visited", "Time praised ", " ")  # a reply that ends in a space, which the model must read
APART = Messages("Rules", "who visited", "Time praised ", " ")
CHAT = "<|user|>who visited<|assistant|>Time praised "


class Api:
    """lm_eval's model of a chat API, as far as templates go: it hands the messages on."""

    def apply_chat_template(self, messages):
        return (json.dumps(messages),)


def generator_of(name, folder, **options):
    spec = ModelSpec(name, {"pretrained": str(folder), "dtype": "float32"}, batch_size=2, device="cpu")
    return LMGenerator(spec, **options)


@pytest.mark.parametrize(
    ("prompt", "system", "text"),
    [
        (BEGUN, None, CHAT),
        (BEGUN, "Be brief.", f"<|system|>Be brief.{CHAT}"),
        (APART, None, f"<|system|>Rules{CHAT}"),
        (APART, "Be brief.", f"<|system|>Be brief.\n\nRules{CHAT}"),
        (Messages("Rules", "who visited"), None, "<|system|>Rules<|user|>who visited<|assistant|>"),
    ],
)
def test_a_chat_template_is_applied_once_and_the_reply_stands_in_the_open_turn(little_llama, prompt, system, text):
    generator = generator_of("hf", little_llama, chat=True, system=system)
    assert generator.continues and generator.wrap(prompt) == text


def test_raw_text_is_the_whole_prompt(little_llama):
    generator = generator_of("hf", little_llama, chat=False, system="Be brief.")
    assert not generator.continues and generator.wrap(BEGUN) == "Be brief.\n\nwho visited Time praised "


def test_transformers_goes_on_in_the_reply(little_llama, direct):
    (found,) = generator_of("hf", little_llama, chat=True).generate([BEGUN], Decoding(9, ()), [0])
    assert found == direct.greedy(CHAT, 9)[0] != direct.greedy("<|user|>who visited Time praised <|assistant|>", 9)[0]


def test_vllm_goes_on_in_the_reply(vllm, little_llama, direct):
    generator = generator_of("vllm", little_llama, chat=True)
    assert generator.generate([BEGUN], Decoding(9, ()), [0]) == [direct.greedy(CHAT, 9)[0]]
    ((sent, _, _),) = vllm.made[0].calls
    assert direct.tokenizer.decode(sent["prompt_token_ids"]) == CHAT


@pytest.mark.parametrize("prompt", [BEGUN, APART])
@pytest.mark.parametrize("chat", [True, False])
def test_tokens_are_those_that_are_sent(little_llama, direct, prompt, chat):
    generator = generator_of("hf", little_llama, chat=chat)
    sent = len(direct.ids(generator.wrap(prompt)))
    assert generator.count_tokens(prompt) + (2048 - 9 - generator.room(9)) == sent


def test_a_chat_api_reads_it_in_the_user_message_and_that_is_said_once(caplog):
    warn_of_replies.cache_clear()
    spec = ModelSpec("local-chat-completions", {"base_url": "http://127.0.0.1"})
    assert not LMGenerator(spec).continues
    with caplog.at_level(logging.WARNING, logger="lm_eval_rag"):
        sent = [json.loads(as_chat(Api(), spec, prompt, None)[0]) for prompt in (Messages("S", "U"), BEGUN, APART)]
    user = {"role": "user", "content": "who visited Time praised "}
    assert sent[1:] == [[user], [{"role": "system", "content": "Rules"}, user]]
    (record,) = caplog.records
    assert "generator=local-chat-completions takes messages and cannot go on in a reply" in record.getMessage()
    warn_of_replies.cache_clear()


WRITTEN = "<think>\nWho? </think>\n\n<search> visited "


@pytest.mark.parametrize(("thinking", "text"), [(True, WRITTEN), (False, "<search> visited ")])
def test_thoughts_stay_in_the_text_where_they_are_asked_for(little_llama, monkeypatch, thinking, text):
    module = "lm_eval_rag.harness.generators.local.continue_batch"
    monkeypatch.setattr(module, lambda lm, texts, *others: [Continuation(WRITTEN, 9, True)] * len(texts))
    (found,) = generator_of("hf", little_llama).complete([BEGUN], Decoding(thinking=thinking), [0])
    assert found == Completion(text, "stop", "" if thinking else "Who?", completion_tokens=9)


def test_vllm_leaves_thoughts_where_they_are_asked_for(vllm, little_llama, monkeypatch):
    generator = generator_of("vllm", little_llama, chat=False)
    plain = generator.lm.model._answer

    def answer(*asked):
        output = plain(*asked)
        output.outputs[0].text = WRITTEN
        return output

    monkeypatch.setattr(generator.lm.model, "_answer", answer)
    texts = [generator.generate(["who"], Decoding(9, (), thinking=thinking), [0])[0] for thinking in (True, False)]
    assert texts == [WRITTEN, "<search> visited "]
