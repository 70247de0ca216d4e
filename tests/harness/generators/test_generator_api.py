"""Models behind an API, played by a scripted server (faults are in tests/faults)."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.prompts import Messages
from lm_eval_rag.harness.generators.base import Completion, Decoding, cut
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.replies import completion_of
from lm_eval_rag.harness.generators.spec import ModelSpec

CHAT = "local-chat-completions"


class Scripted(BaseHTTPRequestHandler):
    """Answers every request by the server's ``reply``, a function of path and body."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(body)
        data = json.dumps(self.server.reply(body)).encode()
        self.send_response(self.server.status)
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
    made.seen, made.status, made.url = [], 200, f"http://127.0.0.1:{made.server_port}/v1"
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


def test_a_chat_api_gets_a_reply_that_is_begun_in_the_user_message(server):
    server.reply = lambda body: chat_reply("<think>b</think> c")
    asked = Messages("Be brief.", "who", "It was", " ")
    generator = api(server)
    assert generator.generate([asked], Decoding(thinking=True), [0]) == ["<think>b</think> c"]
    sent = [(message["role"], message["content"]) for message in server.seen[0]["messages"]]
    assert sent == [("system", "Be brief."), ("user", "who It was")]


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
    assert cut("a\nb", Decoding(stop=())) == cut("a\nb", Decoding(stop=("", "x"))) == "a\nb"
    assert cut("abc", Decoding(stop=("c", "b"))) == "a"


def test_other_forms_of_replies_are_read():
    class Anthropic:
        def parse_generations(self, outputs):
            return [part["text"] for part in outputs["content"]]

    reply = {"content": [{"type": "text", "text": "x"}], "stop_reason": "max_tokens", "usage": {"input_tokens": 3}}
    completion = completion_of(Anthropic(), reply, Decoding(stop=()), 0.5)
    assert completion == Completion("x", "length", prompt_tokens=3, seconds=0.5)
    with pytest.raises(CallError):
        completion_of(Anthropic(), {"content": []}, Decoding(), 0.0)


def test_chat_apis_tell_no_log_probabilities_and_no_tokens(server):
    generator = api(server)
    with pytest.raises(UserError, match=r"gives no log-probabilities.*generator=hf"):
        generator.loglikelihood([("a", "b")])
    assert generator.count_tokens("a b") is None and generator.room(5) is None
    assert api(server, max_length=100).room(5) == 94  # lm_eval keeps one


def test_a_chat_api_is_asked_for_the_log_probabilities_of_its_replies(server):
    def reply(body):
        token = {"token": "Bo", "logprob": -0.5, "top_logprobs": [{"token": "Al", "logprob": -1.5}]}
        given = {"logprobs": {"content": [token]}} if body.get("logprobs") else {}
        return {"choices": [{"message": {"content": "Bo"}, **given}]}

    server.reply = reply
    (found,) = api(server, logprobs=True).complete(["p"], Decoding(alternatives=20), [0])
    assert (found.text, found.tokens, found.first) == ("Bo", (("Bo", -0.5),), (("Al", -1.5),))
    api(server, logprobs=True).complete(["p"], Decoding(), [0])
    api(server).complete(["p"], Decoding(alternatives=20), [0])
    asked = [(body.get("logprobs"), body.get("top_logprobs")) for body in server.seen]
    assert asked == [(True, 20), (True, None), (None, None)]


@pytest.mark.parametrize(
    ("model", "reasons"),
    [("gpt-3.5-turbo", False), ("Qwen2.5-7B-Instruct", False), ("gpt-4.1-2025-04-14", False), ("gpt-4o-mini", False),
     ("foo1", False), ("o3-mini", True), ("gpt-5", True), ("openai/o4-mini", True)],
)  # fmt: skip
def test_a_name_with_a_5_is_no_reason_to_change_the_request(server, monkeypatch, caplog, model, reasons):
    """lm_eval sends temperature 1 and no stop strings to every model with a 5, o1, o3 or o4 in its name."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    server.reply = lambda body: chat_reply("Paris\nLondon")
    generator = api(server, "openai-chat-completions", model=model)
    assert generator.generate(["p"], Decoding(7, ("\n",), 0.5), [0]) == ["Paris"]
    (body,) = server.seen
    assert (body["model"], body["temperature"], body.get("stop")) == (
        model,
        1 if reasons else 0.5,
        None if reasons else ["\n"],
    )
    assert (f"{model} takes neither a temperature" in caplog.text) == reasons


@pytest.mark.parametrize("name", [CHAT, "openai-chat-completions", "local-completions"])
def test_fields_of_ones_own_are_in_every_request(server, monkeypatch, name):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    server.reply = lambda body: {"choices": [{"index": 0, "text": "x", "message": {"content": "x"}}]}
    given = {"tokenizer_backend": "none"} if name == "local-completions" else {}
    body = '{"chat_template_kwargs": {"enable_thinking": false}, "top_k": 5}'
    assert api(server, name, extra_body=body, **given).generate(["p"], Decoding(), [0]) == ["x"]
    assert (server.seen[0]["chat_template_kwargs"], server.seen[0]["top_k"]) == ({"enable_thinking": False}, 5)


def test_a_server_that_takes_one_stop_string_gets_one(server):
    choice = {**chat_reply("Paris\nQuestion: which?")["choices"][0], "finish_reason": "length"}
    server.reply = lambda body: {"choices": [choice]}
    few = api(server, max_stops=1)
    (found,) = few.complete(["p"], Decoding(9, ("\n\n", "\nQuestion:")), [0])
    assert (found.text, found.finish) == ("Paris", "stop")  # it is cut at all of them
    assert server.seen[0]["stop"] == ["\n\n"]
    with pytest.raises(UserError, match="gen_max_stops is for generators behind an API"):
        ModelSpec("hf", {"max_stops": 1}).check()


def test_a_model_that_thinks_gets_room_and_no_stop_strings(server):
    server.reply = lambda body: chat_reply("<think>Rome\nor Paris?</think>\n\nParis\nIt is")
    thinks = api(server, thinking_tokens=1000, max_length=4000)
    (found,) = thinks.complete(["p"], Decoding(8, ("\n",)), [0])
    assert (found.text, found.thinking) == ("Paris", "Rome\nor Paris?")
    assert (server.seen[0]["max_tokens"], server.seen[0].get("stop")) == (1008, None)
    thinks.complete(["p"], Decoding(8, ("</search>",), thinking=True), [0])  # where the thought is part of a protocol
    assert (server.seen[1]["max_tokens"], server.seen[1]["stop"]) == (1008, ["</search>"])
    assert api(server, max_length=4000).room(8) - thinks.room(8) == 1000
    with pytest.raises(UserError, match=r"gen_thinking_tokens=0 is not allowed"):
        api(server, thinking_tokens=0).complete(["p"], Decoding(), [0])


def test_a_server_that_gives_no_log_probabilities_ends_the_run(server):
    server.reply = lambda body: chat_reply("Bo")
    prompts = [f"p{i}" for i in range(20)]
    assert api(server, logprobs=True).generate(prompts[:7], Decoding(), [0] * 7) == ["Bo"] * 7
    with pytest.raises(UserError, match=r"first 8 replies .* tell no probabilities.*Leave out gen_logprobs=True"):
        api(server, logprobs=True, num_concurrent=1).generate(prompts, Decoding(), [0] * 20)
    told = {"logprobs": {"content": [{"token": "Bo", "logprob": -1}]}}
    server.reply = lambda body: {"choices": [chat_reply("Bo")["choices"][0] | (told if len(server.seen) == 1 else {})]}
    server.seen.clear()
    assert api(server, logprobs=True, num_concurrent=1).generate(prompts, Decoding(), [0] * 20) == ["Bo"] * 20


def test_a_model_that_refuses_log_probabilities_says_what_to_do(server):
    server.status, server.reply = 400, lambda body: {"error": {"message": "logprobs are not supported with this model"}}
    with pytest.raises(UserError, match=r"To change: .*leave out gen_logprobs=True"):
        api(server, logprobs=True, num_concurrent=1).generate([f"p{i}" for i in range(20)], Decoding(), [0] * 20)


def test_a_chat_api_counts_with_a_tokenizer_that_it_is_given(server, little_llama, direct):
    generator = api(server, tokenizer_backend="huggingface", tokenizer=str(little_llama))
    assert generator.count_tokens("Time Time who praised Rules") == len(
        direct.tokenizer("Time Time who praised Rules", add_special_tokens=False).input_ids
    )
    server.reply = lambda body: chat_reply("x")
    assert generator.generate(["p"], Decoding(), [0]) == ["x"]


def completions(server, folder, **arguments):
    return api(server, "local-completions", tokenizer=str(folder), tokenizer_backend="huggingface", **arguments)


def test_a_completions_api_is_sent_text(server, little_llama, direct):
    server.reply = lambda body: {"choices": [{"index": 0, "text": f"{body['prompt']}!\nmore"}]}
    assert completions(server, little_llama).generate(["who visited"], Decoding(), [0]) == ["who visited!"]
    server.reply = lambda body: {"choices": [{"index": 0, "text": direct.tokenizer.decode(body["prompt"][0])}]}
    asking = completions(server, little_llama, tokenized_requests=True)  # ids where they are asked for
    assert asking.generate(["who visited"], Decoding(), [0]) == ["who visited"]
    bare = api(server, "local-completions", tokenizer_backend="none")  # and no tokenizer needed
    server.reply = lambda body: {"choices": [{"index": 0, "text": body["prompt"].upper()}]}
    assert bare.generate(["who"], Decoding(), [0]) == ["WHO"] and bare.count_tokens("who") is None


def test_a_completions_api_chats_through_the_tokenizers_template(server, little_llama):
    server.reply = lambda body: {"choices": [{"index": 0, "text": body["prompt"]}]}
    generator = completions(server, little_llama)
    assert not generator.chat and generator.generate(["who"], Decoding(), [0]) == ["who"]
    generator.chat = True
    assert generator.generate(["who"], Decoding(), [0]) == ["<|user|>who<|assistant|>"]
    begun = Messages("", "who", "It was", " ")  # it goes on in the reply, which a chat API cannot
    assert generator.generate([begun], Decoding(), [0]) == ["<|user|>who<|assistant|>It was"] and generator.continues
    bare = api(server, "local-completions", tokenizer_backend="none")
    bare.chat = True
    with pytest.raises(UserError, match=r"generator=local-completions has no chat template.*Leave out chat=True"):
        bare.generate(["who"], Decoding(), [0])


def test_without_log_probabilities_in_the_reply_the_question_fails(server, little_llama):
    server.reply = lambda body: {"choices": [{"index": 0, "text": "x", "logprobs": None}]}
    (failed,) = completions(server, little_llama).loglikelihood([("who visited", " Answer")])
    assert isinstance(failed, CallError) and "holds no log-probabilities" in str(failed)


def test_a_chat_api_is_sent_no_empty_list_of_stops(server):
    server.reply = lambda body: chat_reply("x")
    api(server).generate(["p"], Decoding(stop=()), [0])
    assert server.seen[0]["stop"] is None


# --- the first requests


def refusing(server, status, words, until=10**6):
    """The server refuses ``until`` requests with these words, and answers the others."""

    def reply(body):
        if len(server.seen) <= until:
            server.status = status
            return {"error": {"message": words}}
        server.status = 200
        return chat_reply("x")

    server.reply = reply


@pytest.mark.parametrize(
    ("status", "words", "hint"),
    [
        (400, "prompt must be a string.", "gen_tokenized_requests=False"),
        (422, "Unexpected fields in the request: {'prompt'}", "generator= .chat or completions. and the path"),
        (400, "Cannot use chat template functions because tokenizer.chat_template is not set", "local-completions"),
        (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "openai-chat-completions"),
        (400, "This model's maximum context length is 2048 tokens", "max_prompt_tokens="),
        (400, "The model `gpt-9` does not exist", "gen_model="),
        (500, "Internal Server Error", "gen_model=, gen_base_url= or generator="),
    ],
)
def test_first_requests_that_fail_alike_end_the_run_with_the_argument_to_change(server, status, words, hint):
    refusing(server, status, words)
    with pytest.raises(UserError, match=rf"none of the first 8 requests.*To change: .*{hint}") as raised:
        api(server, num_concurrent=2).generate(["p"] * 40, Decoding(), [0] * 40)
    assert "\n" not in str(raised.value) and words[:20] in str(raised.value)
    assert len(server.seen) <= 20 + 2  # as many tries, all alike, and what was in flight


def test_what_an_earlier_run_was_answered_counts(server):
    refusing(server, 400, "content policy")
    generator = api(server)
    generator.note_answered()
    assert all(isinstance(one, CallError) for one in generator.generate(["p"] * 12, Decoding(), [0] * 12))


def test_replies_without_text_end_the_run_as_well(server):
    server.reply = lambda body: {"choices": [{"message": {"content": None}}]}
    with pytest.raises(UserError, match=r"holds no text.*gen_thinking_tokens=4096"):
        api(server).generate(["p"] * 40, Decoding(), [0] * 40)


def test_one_answer_or_another_failure_among_them_and_the_run_goes_on(server):
    refusing(server, 400, "no", until=7)
    generator = api(server, num_concurrent=1)
    found = generator.generate(["p"] * 12, Decoding(), [0] * 12)
    assert [isinstance(one, CallError) for one in found] == [True] * 7 + [False] * 5
    refusing(server, 400, "no")  # later failures are those of their questions
    assert all(isinstance(one, CallError) for one in generator.generate(["q"] * 12, Decoding(), [0] * 12))
    mixed = api(server, num_concurrent=1)
    server.reply = lambda body: setattr(server, "status", 410 + len(server.seen) % 2) or {"error": "no"}
    assert all(isinstance(one, CallError) for one in mixed.generate(["q"] * 12, Decoding(), [0] * 12))
