"""Replies of chats that begin with a line break, where a line break is a stop string too."""

from __future__ import annotations

import asyncio
import random

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.generators.base import Completion, Decoding, cut
from lm_eval_rag.harness.generators.blank_starts import BlankStarts

CHAT = Decoding(stop=("\n", "END"), skips_blank=True)


@pytest.mark.parametrize(
    ("text", "chat", "raw"),
    [
        ("\nParis\nLondon", "\nParis", ""),
        (" \n\n Paris", " \n\n Paris", " "),
        ("Paris\n", "Paris", "Paris"),
        ("\nEND\nParis", "\n", ""),  # stop strings that are seen end a reply anywhere
        ("\n\n", "\n\n", ""),
        ("", "", ""),
    ],
)
def test_white_space_before_the_text_ends_no_reply_of_a_chat(text, chat, raw):
    assert cut(text, CHAT) == chat
    assert cut(text, Decoding(stop=CHAT.stop)) == raw


class Server:
    """Writes a text as a server does that knows the stop strings; a token a character."""

    def __init__(self, text: str) -> None:
        self.text, self.sent = text, list[tuple[str, ...]]()

    async def send(self, sent: Decoding) -> Completion:
        self.sent.append(sent.stop)
        whole = min((self.text.partition(stop)[0] for stop in sent.stop), key=len, default=self.text)
        return Completion(cut(whole, CHAT), "stop", "", 10, len(whole), 0.5)


def replies(server: Server, decodings: list[Decoding]) -> list[Completion | CallError]:
    async def main() -> list[Completion | CallError]:
        starts = BlankStarts()
        return [await starts.ask(decoding, server.send) for decoding in decodings]

    return asyncio.run(main())


def test_the_stop_string_is_left_out_once_it_ended_a_reply_before_its_text() -> None:
    server = Server("\nParis\nLondon")
    first, second = replies(server, [CHAT, CHAT])
    assert isinstance(first, Completion) and isinstance(second, Completion)
    assert server.sent == [("\n", "END"), ("END",), ("END",)] and first.text == second.text == "\nParis"
    assert (first.prompt_tokens, first.completion_tokens, first.seconds) == (20, 0 + 13, 1.0)  # both were paid for
    assert (second.prompt_tokens, second.completion_tokens, second.seconds) == (10, 13, 0.5)


def test_a_blank_reply_is_asked_for_again_each_time() -> None:
    """A model that has nothing to say does not tell how the others begin."""
    server = Server("")
    assert [reply.text for reply in replies(server, [CHAT, CHAT]) if isinstance(reply, Completion)] == ["", ""]
    assert server.sent == [("\n", "END"), ("END",)] * 2


@pytest.mark.parametrize(
    ("text", "decoding"),
    [
        ("Paris\nLondon", CHAT),
        ("\nParis", Decoding(stop=("\n",))),  # raw text
        ("\nParis", Decoding(stop=("END",), skips_blank=True)),
        ("END", Decoding(stop=("END",), skips_blank=True)),
    ],
)
def test_nothing_else_is_asked_for_twice(text, decoding) -> None:
    server = Server(text)
    replies(server, [decoding])
    assert server.sent == [decoding.stop]


def test_a_failure_is_handed_on() -> None:
    async def fails(sent: Decoding) -> Completion | CallError:
        return CallError("down")

    assert isinstance(asyncio.run(BlankStarts().ask(CHAT, fails)), CallError)


def test_a_local_model_stops_where_the_text_is_cut() -> None:
    """Whatever the tokens are: each row ends with the first that brings a stop string behind its text."""
    torch = pytest.importorskip("torch")
    from lm_eval_rag.harness.generators.local import _stopping

    drawn = random.Random(0)
    pieces = ["\n", " ", "\n\n", "a", "b\n", "\nc", "E", "ND"]

    class Tokenizer:
        def batch_decode(self, rows):
            return ["".join(pieces[id_] for id_ in row) for row in rows.tolist()]

    for decoding in (CHAT, Decoding(stop=CHAT.stop)):
        for _ in range(200):
            ids = torch.tensor([[drawn.randrange(len(pieces)) for _ in range(8)] for _ in range(3)])
            stopping, ended = _stopping(Tokenizer(), decoding, 0), [0, 0, 0]
            for length in range(1, 9):
                for row, done in enumerate(stopping(ids[:, :length], None).tolist()):
                    ended[row] = ended[row] or length * done
            for row, end in enumerate(ended):
                texts = ["".join(pieces[id_] for id_ in ids[row, :length]) for length in range(1, 9)]
                assert end == next((i for i, text in enumerate(texts, 1) if cut(text, decoding) != text), 0), texts
