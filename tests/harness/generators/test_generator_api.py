"""Models behind an API, played by a scripted server (faults are in tests/faults)."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.generators.base import Completion, Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.replies import completion_of, cut
from lm_eval_rag.harness.generators.spec import ModelSpec

CHAT = "local-chat-completions"


class Scripted(BaseHTTPRequestHandler):
    """Answers every request by the server's ``reply``, a function of path and body."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(body)
        data = json.dumps(self.server.reply(body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *arguments):
        """Nothing on the terminal."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    made.seen, made.url = [], f"http://127.0.0.1:{made.server_port}/v1"
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def api(server, name=CHAT, seed=0, **arguments):
    given = {"model": "any", "base_url": server.url, "max_retries": 2, "retry_wait": 0.01, **arguments}
    return LMGenerator(ModelSpec(name, given), seed=seed)


def chat_reply(text):
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}


def test_a_chat_api_gets_one_user_message_and_numbered_seeds(server):
    server.reply = lambda body: chat_reply(f"{body['messages'][0]['content']} {body['seed']}")
    sampled = api(server, seed=5).generate(["p", "p", "r"], Decoding(7, ("END",), 0.5), [0, 1, 2])
    assert sampled == ["p 5", "p 6", "r 7"]
    for body in server.seen:
        assert [message["role"] for message in body["messages"]] == ["user"]
        assert (body["max_tokens"], body["temperature"], body["stop"]) == (7, 0.5, ["END"])
    server.seen.clear()
    api(server).generate(["p"], Decoding(), [0])
    assert server.seen[0]["temperature"] == 0 and "do_sample" not in server.seen[0]


def test_what_comes_after_a_stop_is_cut_where_the_server_does_not(server):
    server.reply = lambda body: chat_reply("Paris\nLondon")
    assert api(server).generate(["p"], Decoding(), [0]) == ["Paris"]
    assert api(server).generate(["p"], Decoding(stop=(*"wxyz", "Lon")), [0]) == ["Paris\n"]


def test_many_requests_keep_their_order(server):
    server.reply = lambda body: chat_reply(body["messages"][0]["content"].upper())
    prompts = [f"prompt {i}" for i in range(50)]
    assert api(server).generate(prompts, Decoding(), [0] * 50) == [prompt.upper() for prompt in prompts]


@pytest.mark.parametrize(
    "reply",
    [None, [], {}, {"choices": None}, {"choices": [{"message": {}}]}, {"content": "x"}, {"choices": [5]}],
    ids=str,
)
def test_a_reply_without_text_is_a_failure_and_no_empty_answer(server, reply):
    server.reply = lambda body: reply
    (found,) = api(server).generate(["p"], Decoding(), [0])
    assert isinstance(found, CallError) and "try 2 of 2: the reply holds no text" in str(found)
    assert len(server.seen) == 2


def test_texts_are_read_leniently_and_made_storable(server):
    server.reply = lambda body: {"choices": [{"message": {"content": "half \ud83d a pair"}}]}  # no index, no pair
    (found,) = api(server).generate(["p"], Decoding(), [0])
    assert found == "half ? a pair"
    server.reply = lambda body: chat_reply("")
    assert api(server).generate(["p"], Decoding(), [0]) == [""]  # an empty text is an answer


def test_an_empty_list_of_stops_cuts_nothing():
    assert cut("a\nb", ()) == cut("a\nb", ("", "x")) == "a\nb" and cut("abc", ("c", "b")) == "a"


def test_other_forms_of_replies_are_read():
    class Anthropic:
        def parse_generations(self, outputs):
            return [part["text"] for part in outputs["content"]]

    reply = {"content": [{"type": "text", "text": "x"}], "stop_reason": "max_tokens", "usage": {"input_tokens": 3}}
    completion = completion_of(Anthropic(), reply, (), 0.5)
    assert completion == Completion("x", "length", prompt_tokens=3, seconds=0.5)
    with pytest.raises(CallError):
        completion_of(Anthropic(), {"content": []}, (), 0.0)


def test_chat_apis_tell_no_log_probabilities_and_no_tokens(server):
    generator = api(server)
    with pytest.raises(UserError, match=r"gives no log-probabilities.*generator=hf"):
        generator.loglikelihood([("a", "b")])
    assert generator.count_tokens("a b") is None and generator.room(5) is None
    assert api(server, max_length=100).room(5) == 94  # lm_eval keeps one


def test_a_chat_api_counts_with_a_tokenizer_that_it_is_given(server, little_llama, reference):
    generator = api(server, tokenizer_backend="huggingface", tokenizer=str(little_llama))
    assert generator.count_tokens("Time Time who praised Rules") == len(
        reference[1]("Time Time who praised Rules", add_special_tokens=False).input_ids
    )
    server.reply = lambda body: chat_reply("x")
    assert generator.generate(["p"], Decoding(), [0]) == ["x"]


def test_a_completions_api_gives_texts_and_log_probabilities(server, little_llama, reference):
    generator = api(server, "local-completions", tokenizer=str(little_llama), tokenizer_backend="huggingface")
    server.reply = lambda body: {"choices": [{"index": 0, "text": reference[1].decode(body["prompt"][0]) + "\nmore"}]}
    assert generator.generate(["who visited"], Decoding(), [0]) == ["who visited"]

    def echo(body):
        count = len(body["prompt"][0]) + 1  # the prompt's tokens and the one that must be written
        values = [None] + [-float(i) for i in range(1, count)]
        return {"choices": [{"index": 0, "logprobs": {"token_logprobs": values, "top_logprobs": [{"x": 0.0}] * count}}]}

    server.reply = echo
    before, both = (len(reference[1](text).input_ids) for text in ("who visited", "who visited Answer"))
    (found,) = generator.loglikelihood([("who visited", " Answer")])
    assert found == -sum(range(before, both))
    server.reply = lambda body: {"choices": [{"index": 0, "text": "x", "logprobs": None}]}
    (failed,) = generator.loglikelihood([("who visited", " Answer")])
    assert isinstance(failed, CallError) and "holds no log-probabilities" in str(failed)
