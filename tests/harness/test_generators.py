"""Generators by composition: names, keys, fingerprints; a local folder through hf; models behind an API."""

import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lm_eval_rag.harness.errors import CallError, UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.build import ModelSpec
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.network import cut, text_of
from lm_eval_rag.harness.journal import digest

CHAT = "local-chat-completions"
PROMPTS = ["what does who visited ?", "Question", "Time Time who praised Rules", "Answer who ?", "Documents visited"]


def fingerprint(name=CHAT, seed=0, chat=False, **arguments):
    return LMGenerator(ModelSpec(name, arguments), chat=chat, seed=seed).fingerprint


# --- names, keys, arguments


@pytest.mark.parametrize(
    ("name", "near"), [("hff", "'hf'"), ("tinny", "'tiny'"), ("local-chat-completion", "'local-chat-completions'")]
)
def test_an_unknown_generator_gets_the_nearest_names(name, near):
    with pytest.raises(UserError, match=rf"Unknown generator '{name}'. Did you mean {near}.*Allowed: .*vllm"):
        ModelSpec(name).check()


@pytest.mark.parametrize("name", ["openai-chat-completions", "openai-completions"])
def test_a_missing_key_is_named_before_anything_is_built(name, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match="needs the environment variable OPENAI_API_KEY"):
        ModelSpec(name, {"model": "any"}).check()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ModelSpec(name, {"model": "any"}).check()


def test_the_key_is_no_part_of_the_identity(monkeypatch):
    seen = set()
    for key in ("sk-one", "sk-two"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        spec = ModelSpec("openai-chat-completions", {"model": "any"})
        LMGenerator(spec).lm.header  # noqa: B018 - the model has read the key
        assert key not in json.dumps(spec.identity)
        seen.add(digest(spec.identity))
    assert len(seen) == 1


@pytest.mark.parametrize("name", ["api_key", "auth_token", "token", "header"])
def test_a_key_among_the_arguments_is_refused(name):
    with pytest.raises(UserError, match=f"gen_{name} is refused.*OPENAI_API_KEY") as raised:
        ModelSpec(CHAT, {name: "sk-secret"}).check()
    assert "sk-secret" not in str(raised.value)


@pytest.mark.parametrize(("name", "value"), [("num_concurrent", 0), ("max_retries", 0), ("num_concurrent", "many")])
def test_counts_of_threads_and_tries_are_checked(name, value):
    with pytest.raises(UserError, match=f"gen_{name}={value!r} is not allowed"):
        ModelSpec(CHAT, {name: value}).check()


@pytest.mark.parametrize("name", ["hf", CHAT])
def test_what_cannot_be_built_says_so(name, tmp_path):
    given = {"pretrained": str(tmp_path)} if name == "hf" else {"model": "any", "base_url": "x", "timeout": "soon"}
    with pytest.raises(UserError, match=rf"generator={name} with .* cannot be built.*gen_NAME=VALUE"):
        LMGenerator(ModelSpec(name, given)).generate(["p"], Decoding(), [0])


# --- fingerprints


@pytest.mark.parametrize(
    "other", [{"model": "b"}, {"temperature": 1}, {"seed": 1}, {"chat": True, "name": "hf"}, {"name": "hf"}], ids=str
)
def test_what_changes_answers_changes_the_fingerprint(other):
    base = {"name": "hf"} if "chat" in other else {}
    assert fingerprint(**base, model="a") != fingerprint(**{**base, "model": "a", **other})


@pytest.mark.parametrize("name", ["num_concurrent", "max_retries", "retry_wait", "timeout"])
def test_what_changes_the_speed_alone_does_not(name):
    assert fingerprint(model="a") == fingerprint(model="a", **{name: 3})


def test_the_content_of_a_local_folder_counts(tmp_path):
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "weights.bin").write_bytes(b"one")
    first = fingerprint("hf", pretrained=str(folder))
    (folder / "README.md").write_text("words that change no answer")
    assert fingerprint("hf", pretrained=str(folder)) == first
    (folder / "deep" / "weights.bin").write_bytes(b"two")
    assert fingerprint("hf", pretrained=str(folder)) != first
    adapter = shutil.copytree(folder, tmp_path / "adapter")
    with_adapter = fingerprint("hf", pretrained=str(folder), peft=str(adapter))
    (adapter / "deep" / "weights.bin").write_bytes(b"three")
    assert fingerprint("hf", pretrained=str(folder), peft=str(adapter)) != with_adapter


def test_a_fingerprint_reads_the_folder_once(tmp_path, monkeypatch):
    from lm_eval_rag.harness.generators import build

    read, content = [], build._content
    monkeypatch.setattr(build, "_content", lambda folder: read.append(folder) or content(folder))
    generator = LMGenerator(ModelSpec("hf", {"pretrained": str(tmp_path)}))
    assert len({generator.fingerprint for _ in range(5)}) == 1 and len(read) == 1
    generator.chat = True  # lm_eval says so only once the model is made
    assert generator.fingerprint != LMGenerator(ModelSpec("hf", {"pretrained": str(tmp_path)})).fingerprint


# --- a local folder through hf


def hf(folder, chat=False, **arguments):
    given = {"pretrained": str(folder), "dtype": "float32", **arguments}
    return LMGenerator(ModelSpec("hf", given, batch_size=2, device="cpu"), chat=chat)


@pytest.fixture(scope="module")
def plain(little_llama):
    return hf(little_llama)


@pytest.fixture(scope="module")
def reference(little_llama):
    """The same model and tokenizer, without lm_eval."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(little_llama, dtype="float32").eval()
    return model, AutoTokenizer.from_pretrained(little_llama)


@pytest.fixture(scope="module")
def lora(little_llama, tmp_path_factory):
    """A LoRA adapter that changes what the model says."""
    peft, torch = pytest.importorskip("peft"), pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("lora")
    base = AutoModelForCausalLM.from_pretrained(little_llama, dtype="float32")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        peft.get_peft_model(base, config).save_pretrained(folder)
    return folder


def greedy(reference, prompt, n, stop="\n"):
    """n greedy tokens, one forward pass each, cut at the stop string or the end token."""
    import torch

    model, tokenizer = reference
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    start = ids.shape[1]
    with torch.no_grad():
        for _ in range(n):
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
            if ids[0, -1] == tokenizer.eos_token_id:
                break
    return tokenizer.decode(ids[0, start:], skip_special_tokens=True).split(stop)[0]


def test_hf_generates_what_the_model_generates(plain, reference):
    found = plain.generate(PROMPTS, Decoding(max_tokens=9), [0] * len(PROMPTS))
    assert found == [greedy(reference, prompt, 9) for prompt in PROMPTS]
    assert len(set(found)) > 3


def test_a_stop_string_ends_it(plain, reference):
    whole = greedy(reference, PROMPTS[0], 9)
    stop = whole[2:4]
    (found,) = plain.generate(PROMPTS[:1], Decoding(max_tokens=9, stop=(stop,)), [0])
    assert found == whole.split(stop)[0] != whole


def test_lora_generates_what_the_merged_model_generates(little_llama, lora, reference):
    import peft
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(little_llama, dtype="float32")
    merged = peft.PeftModel.from_pretrained(base, lora).merge_and_unload().eval()
    found = hf(little_llama, peft=str(lora)).generate(PROMPTS, Decoding(max_tokens=6), [0] * len(PROMPTS))
    assert found == [greedy((merged, reference[1]), prompt, 6) for prompt in PROMPTS]
    assert found != [greedy(reference, prompt, 6) for prompt in PROMPTS]


def test_the_chat_template_is_applied_exactly_when_chat(little_llama, plain, reference):
    wrapped = [f"<|user|>{prompt}<|assistant|>" for prompt in PROMPTS]
    chatting = hf(little_llama, chat=True)
    found = chatting.generate(PROMPTS, Decoding(max_tokens=6), [0] * len(PROMPTS))
    assert found == [greedy(reference, prompt, 6) for prompt in wrapped]
    assert found != plain.generate(PROMPTS, Decoding(max_tokens=6), [0] * len(PROMPTS))
    assert chatting.room(10) == plain.room(10) - 2  # the two marks of the template


def test_a_model_without_chat_template_says_so(little_llama, tmp_path):
    folder = shutil.copytree(little_llama, tmp_path / "base")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match=r"has no chat template.*without --apply_chat_template"):
        hf(folder, chat=True).generate(["p"], Decoding(), [0])


@pytest.mark.parametrize("continuation", [" Answer", " who visited", "?"])
def test_log_probabilities_are_those_of_the_model(plain, reference, continuation):
    import torch

    model, tokenizer = reference
    pairs = [(prompt, continuation) for prompt in PROMPTS]
    found = plain.loglikelihood(pairs)
    for (prompt, _), value in zip(pairs, found, strict=True):
        before = tokenizer(prompt).input_ids
        ids = tokenizer(prompt + continuation).input_ids
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].double()
        chosen = [logits[i - 1][ids[i]] - torch.logsumexp(logits[i - 1], 0) for i in range(len(before), len(ids))]
        assert value == pytest.approx(float(sum(chosen)), abs=1e-3)


def test_tokens_and_room_are_the_models(plain, reference):
    model, tokenizer = reference
    assert [plain.count_tokens(prompt) for prompt in PROMPTS] == [len(tokenizer(p).input_ids) for p in PROMPTS]
    assert plain.room(32) == model.config.max_position_embeddings - 32


# --- behind an API (faults are in tests/faults)


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

    assert text_of(Anthropic(), {"content": [{"type": "text", "text": "x"}]}) == "x"
    with pytest.raises(CallError):
        text_of(Anthropic(), {"content": []})


def test_chat_apis_tell_no_log_probabilities_and_no_tokens(server):
    generator = api(server)
    with pytest.raises(UserError, match=r"gives no log-probabilities.*generator=hf"):
        generator.loglikelihood([("a", "b")])
    assert generator.count_tokens("a b") is None and generator.room(5) is None
    assert api(server, max_length=100).room(5) == 94  # lm_eval keeps one


def test_a_chat_api_counts_with_a_tokenizer_that_it_is_given(server, little_llama, reference):
    generator = api(server, tokenizer_backend="huggingface", tokenizer=str(little_llama))
    assert generator.count_tokens(PROMPTS[2]) == len(reference[1](PROMPTS[2], add_special_tokens=False).input_ids)
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
