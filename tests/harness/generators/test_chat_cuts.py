"""Stop strings of white space in a chat: they end a reply only behind some text, and no server is told of them."""

from __future__ import annotations

import asyncio

import pytest

from lm_eval_rag.harness.backends.generation import GenerateBackend, OpenStream
from lm_eval_rag.harness.core.asks import Generate
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.generators.base import Decoding, cut
from lm_eval_rag.harness.generators.request_options import request_options
from lm_eval_rag.harness.generators.spec import ModelSpec

RAW = Decoding(stop=("\n", "END"))
CHAT = Decoding(stop=RAW.stop, chat=True)


@pytest.mark.parametrize(
    ("text", "chat", "raw"),
    [
        ("\nParis\nLondon", "\nParis", ""),
        (" \n\n Paris", " \n\n Paris", " "),
        ("Paris\n", "Paris", "Paris"),
        ("Paris: the capital\nof", "Paris: the capital", "Paris: the capital"),
        ("**Answer:**\n\nBo Reed\nHe", "**Answer:**\n\nBo Reed", "**Answer:**"),
        ("## The final answer\nBo Reed\nHe", "## The final answer\nBo Reed", "## The final answer"),
        ("Sure!\nBo Reed", "Sure!", "Sure!"),
        ("Sure! Here it is:\nAnswer\nBo Reed\n", "Sure! Here it is:\nAnswer\nBo Reed", "Sure! Here it is:"),
        ("\nEND\nParis", "\n", ""),  # stop strings that are seen end a reply anywhere
        ("Answer:\nEND", "Answer:\n", "Answer:"),
        ("\n\n", "\n\n", ""),
        ("Answer:\n", "Answer:\n", "Answer:"),
        ("", "", ""),
    ],
)
def test_white_space_and_announcements_do_not_end_a_reply_of_a_chat(text, chat, raw):
    assert (cut(text, CHAT), cut(text, RAW)) == (chat, raw)


def test_a_server_is_told_of_the_others_alone():
    def sent(decoding, name="local-chat-completions"):
        return request_options(ModelSpec(name, {}), None, decoding, 0, is_api=True)

    assert (CHAT.sent, RAW.sent) == (("END",), ("\n", "END"))
    assert sent(CHAT)["until"] == ["END"] and sent(RAW, "local-completions")["until"] == ["\n", "END"]
    assert sent(Decoding(chat=True))["stop"] is None  # servers refuse the empty list that lm_eval would send


def test_a_local_chat_goes_on_after_a_line_break(little_llama, direct_chat, direct):
    """Greedy texts of the same model: the chat is cut where a text behind it begins, raw text at once."""
    pytest.importorskip("torch")
    from lm_eval_rag.harness.generators.lm import LMGenerator

    for chat, model in ((True, direct_chat), (False, direct)):
        generator = LMGenerator(ModelSpec("hf", {"pretrained": str(little_llama), "dtype": "float32"}), chat=chat)
        whole = model.greedy("who visited", 40)[0]
        blank = whole[whole.index(" ") :][:1]  # its first space, as a task's line break
        decoding = Decoding(40, (blank,), chat=chat)
        assert generator.generate(["who visited"], decoding, [0]) == [cut(whole, decoding)]


@pytest.mark.parametrize("chat", [True, False])
def test_the_generators_form_decides(chat):
    """And a generator that does not say is one of raw text."""
    seen = []

    class Form:
        fingerprint, batch = "form", 4

        def generate(self, prompts, decoding, samples):
            seen.append(decoding.chat)
            return ["Bo"] * len(prompts)

        def count_tokens(self, text):
            return None

        def room(self, max_tokens):
            return None

    generator = Form()
    if chat:
        generator.chat = True

    async def main():
        backend = GenerateBackend(OpenStream(generator))
        await backend.answer(Query("q", "q"), Generate("p"))
        await backend.close()

    asyncio.run(main())
    assert seen == [chat]


def test_replies_from_before_are_not_taken_for_those_that_are_cut_here(tmp_path):
    """Then a line break was sent: such a reply may be blank where the model had more to say."""

    class Counting:
        fingerprint, batch, chat, asked = "same", 4, False, 0

        def generate(self, prompts, decoding, samples):
            self.asked += len(prompts)
            return ["Bo"] * len(prompts)

        def count_tokens(self, text):
            return None

        def room(self, max_tokens):
            return None

    async def ask(generator, stop):
        backend = GenerateBackend(OpenStream(generator), Journal(tmp_path / "j.sqlite"), Decoding(stop=stop))
        await backend.answer(Query("q", "q"), Generate("p"))
        await backend.close()
        backend.journal.close()

    generator = Counting()
    for chat, stop, asked in ((False, ("\n",), 1), (True, ("\n",), 2), (True, ("\n",), 2), (False, ("END",), 3)):
        generator.chat = chat
        asyncio.run(ask(generator, stop))
        assert generator.asked == asked
    generator.chat = True
    asyncio.run(ask(generator, ("END",)))
    assert generator.asked == 3  # nothing of that request has changed


def test_a_reply_that_is_cut_here_is_not_one_that_ran_out_of_tokens(vllm, little_llama, direct_chat):
    pytest.importorskip("torch")
    from lm_eval_rag.harness.generators.lm import LMGenerator

    given = {"pretrained": str(little_llama), "dtype": "float32", "gpu_memory_utilization": 0.5}
    generator = LMGenerator(ModelSpec("vllm", given, batch_size="auto"), chat=True, seed=3)
    whole = direct_chat.greedy("who visited", 30)[0]
    (reply,) = generator.complete(["who visited"], Decoding(30, (" ",), chat=True), [0])
    assert " " in whole and reply.text == cut(whole, Decoding(30, (" ",), chat=True)) and reply.finish == "stop"
