"""The contract of every generator: limit, stop strings, greedy, samples, empty texts, log-probabilities.

The checkpoint's ``generation_config.json`` asks for five sampled tokens (that of ``tiny`` for 48); texts and
log-probabilities are held against a direct computation with torch.
"""

import json
import logging
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec

PROMPTS = ["what does who visited ?", "Question", "Time Time who praised Rules", "Answer who ?", "Documents visited"]
LOCAL = ("tiny", "hf", "hf_chat", "vllm", "vllm_chat")
SERVED = ("completions", "chat")


def make(kind, folder, url=None, seed=0):
    """A generator of a kind over a checkpoint."""
    here = {"pretrained": str(folder), "dtype": "float32"}
    there = {"model": str(folder), "num_concurrent": 1, "timeout": 60, "max_retries": 2}
    spec, chat = {
        "tiny": lambda: (ModelSpec("tiny"), None),
        "hf": lambda: (ModelSpec("hf", here, 3, "cpu"), False),
        "hf_chat": lambda: (ModelSpec("hf", here, 3, "cpu"), None),
        "vllm": lambda: (ModelSpec("vllm", here, "auto"), False),
        "vllm_chat": lambda: (ModelSpec("vllm", here, "auto"), None),
        "completions": lambda: (ModelSpec("local-completions", {**there, "base_url": f"{url}/completions"}), None),
        "chat": lambda: (ModelSpec("local-chat-completions", {**there, "base_url": f"{url}/chat/completions"}), None),
    }[kind]()
    return LMGenerator(spec, chat=chat, seed=seed)


@pytest.fixture(params=[*LOCAL, *SERVED])
def kind(request):
    """Every kind of generator; what it needs to be installed is there, or the test is skipped."""
    pytest.importorskip("transformers")
    if request.param.startswith("vllm"):
        request.getfixturevalue("fake_vllm")
    return request.param


@pytest.fixture
def url(kind, request):
    return request.getfixturevalue("served") if kind in SERVED else None


@pytest.fixture
def told(kind, request):
    """The same checkpoint, directly."""
    name = "direct_tiny" if kind == "tiny" else "direct_chat" if kind.endswith("chat") else "direct"
    return request.getfixturevalue(name)


@pytest.fixture(scope="module")
def silent_llama(stubborn_llama, tmp_path_factory):
    """The same, but it ends at once: its first token is the end token, or the padding that counts as one too."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("silent") / "llama"
    shutil.copytree(stubborn_llama, folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.weight[2], model.lm_head.weight[0] = 1.0, -1.0
    model.generation_config.eos_token_id = [2, 0]
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def generator(kind, url, stubborn_llama):
    return make(kind, stubborn_llama, url)


def greedy(generator, prompts, n, stop=()):
    return generator.generate(prompts, Decoding(n, stop), [0] * len(prompts))


@pytest.mark.parametrize("n", [1, 8, 60])
def test_the_limit_is_exact(generator, told, n):
    wanted = [told.greedy(prompt, n) for prompt in PROMPTS]
    assert max(len(ids) for _, ids in wanted) == n  # some text does not end before
    assert greedy(generator, PROMPTS, n) == [text for text, _ in wanted]


def test_stop_strings_are_cut(generator, told):
    whole = told.greedy(PROMPTS[0], 20)[0]
    later, earlier = whole[6:9], whole[3:5]
    assert earlier not in whole[:3]
    for stops in ((earlier,), (later, earlier), ("never there", earlier, later)):
        assert greedy(generator, PROMPTS[:1], 20, stops) == [whole[:3]]


def test_greedy_is_the_same_alone_in_company_and_again(generator):
    together = greedy(generator, PROMPTS, 12)
    assert [greedy(generator, [prompt], 12)[0] for prompt in PROMPTS] == together
    assert greedy(generator, PROMPTS[::-1], 12)[::-1] == together


def test_samples_are_numbered(kind, url, generator, stubborn_llama):
    """Sample n is drawn by seed + n, whatever else is drawn; no two of six are alike."""
    how = Decoding(12, (), 0.9)
    first, numbers = PROMPTS[0], list(range(6))
    drawn = generator.generate([first] * 6, how, numbers)
    assert len(set(drawn)) == 6
    mixed = generator.generate([PROMPTS[2], first, PROMPTS[1], first], how, [4, 4, 0, 1])
    assert mixed[1] == drawn[4] and mixed[3] == drawn[1]
    assert generator.generate([first], how, [5]) == drawn[5:]
    assert make(kind, stubborn_llama, url, seed=2).generate([first] * 2, how, [0, 1]) == drawn[2:4]


def test_an_empty_text_is_an_answer(kind, url, silent_llama, told):
    if kind == "tiny":
        first = told.greedy(PROMPTS[0], 5)[0][0]
        assert greedy(make(kind, None), PROMPTS[:1], 5, (first,)) == [""]
        return
    assert greedy(make(kind, silent_llama, url), PROMPTS[:2], 5) == ["", ""]


@pytest.mark.parametrize("kind", LOCAL, indirect=True)
@pytest.mark.parametrize("continuation", [" Answer", " who visited", "?"])
def test_log_probabilities_are_those_of_the_model(generator, told, continuation):
    found = generator.loglikelihood([(prompt, continuation) for prompt in PROMPTS])
    assert found == pytest.approx([told.log_probability(prompt, continuation) for prompt in PROMPTS], abs=1e-3)


def test_a_checkpoint_that_wants_more_warns_of_nothing(stubborn_llama, caplog):
    transformers = logging.getLogger("transformers")
    transformers.addHandler(caplog.handler)
    try:
        for kind in ("tiny", "hf"):
            for n in (4, 60):
                greedy(make(kind, stubborn_llama), PROMPTS, n)
    finally:
        transformers.removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


# --- log-probabilities over the network: a server that echoes them, and one that does not


class Echoing(BaseHTTPRequestHandler):
    """A completions server that computes the log-probabilities of the token ids that it is sent."""

    def do_POST(self):
        import torch

        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        (ids,) = body["prompt"]
        with torch.no_grad():
            table = torch.log_softmax(self.server.direct.model(torch.tensor([[*ids, 5]])).logits[0].double(), -1)
        values = [None, *(float(table[i][token]) for i, token in enumerate([*ids[1:], 5]))]
        logprobs = {"token_logprobs": values, "top_logprobs": [{"x": 0.0}] * len(values)}
        data = json.dumps({"choices": [{"index": 0, "text": "x", "logprobs": logprobs}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *arguments):
        """Nothing on the terminal."""


@pytest.fixture
def echoing(direct):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echoing)
    server.direct = direct
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_log_probabilities_over_the_network_are_those_of_the_model(echoing, little_llama, direct):
    found = make("completions", little_llama, echoing).loglikelihood([(prompt, " Answer") for prompt in PROMPTS])
    wanted = []
    for prompt in PROMPTS:  # lm_eval sends an API no begin token
        ids = direct.tokenizer(prompt + " Answer", add_special_tokens=False).input_ids
        wanted.append(direct_sum(direct, ids, len(direct.tokenizer(prompt, add_special_tokens=False).input_ids)))
    assert found == pytest.approx(wanted, abs=1e-3)


def direct_sum(direct, ids, start):
    import torch

    with torch.no_grad():
        table = torch.log_softmax(direct.model(torch.tensor([ids])).logits[0].double(), -1)
    return float(sum(table[i - 1][ids[i]] for i in range(start, len(ids))))


def test_a_server_that_refuses_token_ids_names_the_argument(served, stubborn_llama):
    given = {"model": str(stubborn_llama), "base_url": f"{served}/completions", "tokenized_requests": True}
    with pytest.raises(UserError, match=r"none of the first 8 requests.*400.*gen_tokenized_requests=False"):
        greedy(LMGenerator(ModelSpec("local-completions", given)), PROMPTS * 4, 3)


def test_a_server_that_gives_no_log_probabilities_says_so(served, stubborn_llama):
    generator = make("completions", stubborn_llama, served)
    failed = generator.loglikelihood([(prompt, " Answer") for prompt in PROMPTS[:2]])
    assert all(isinstance(one, CallError) for one in failed)
    with pytest.raises(UserError, match="gives no log-probabilities"):
        make("chat", stubborn_llama, served).loglikelihood([("a", "b")])
