"""vLLM and litellm, whose packages are not installed here: lm_eval's own classes over doubles of what they import.

What the doubles cannot show: that the real engines accept the arguments, and what they generate.
"""

import sys
from importlib import import_module
from textwrap import dedent

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import PACKAGES, ModelSpec
from lm_eval_rag.harness.plugin.arguments import _batch_size

VLLM = {
    "__init__": """
        from types import SimpleNamespace

        made = []

        class SamplingParams:
            def __init__(self, max_tokens=16, stop=None, temperature=1.0, seed=None, **others):
                self.max_tokens, self.stop, self.temperature, self.seed = max_tokens, stop, temperature, seed
                self.others = others

        def TokensPrompt(prompt_token_ids):
            return {"prompt_token_ids": prompt_token_ids}

        class LLM:
            def __init__(self, **arguments):
                self.arguments, self.calls = arguments, []
                length = SimpleNamespace(max_model_len=arguments["max_model_len"] or 2048)
                self.llm_engine = SimpleNamespace(model_config=length)
                made.append(self)

            def generate(self, prompts, sampling_params, use_tqdm, lora_request=None):
                self.calls.append((prompts, sampling_params, lora_request))
                return [self.reply(prompt["prompt_token_ids"]) for prompt in prompts]

            def reply(self, ids):
                return SimpleNamespace(
                    outputs=[SimpleNamespace(text=f"{len(ids)} tokens\\nmore")],
                    prompt_logprobs=[None, *({token: -0.5} for token in ids[1:])],
                )
        """,
    "lora/__init__": "",
    "lora/request": """
        from typing import NamedTuple

        class LoRARequest(NamedTuple):
            name: str
            id: int
            path: str
        """,
    "renderers/__init__": "",
    "renderers/hf": """
        def resolve_chat_template(tokenizer, chat_template, tools, model_config):
            return None
        """,
    "tokenizers/__init__": """
        def get_tokenizer(name, tokenizer_mode, trust_remote_code, revision):
            from transformers import AutoTokenizer

            return AutoTokenizer.from_pretrained(name)
        """,
}
LITELLM = {
    "__init__": """
        import openai

        seen, failures, drop_params = [], [], False

        class RateLimitError(openai.OpenAIError):
            status_code = 429

        class AuthenticationError(openai.OpenAIError):
            status_code = 401

        class Reply:
            def __init__(self, text):
                self.text = text

            def model_dump(self):
                return {"choices": [{"index": 0, "message": {"role": "assistant", "content": self.text}}]}

        def completion(**payload):
            seen.append(payload)
            if failures:
                raise failures.pop(0)
            return Reply(payload["messages"][-1]["content"].upper() + "\\nmore")
        """,
}


@pytest.fixture(scope="module")
def install(tmp_path_factory):
    """``install(name, files)``: puts a package with a version on the path of this file's tests, and imports it."""
    folder = tmp_path_factory.mktemp("packages")

    def install(name, files):
        for stem, text in files.items():
            path = folder / name / f"{stem}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))
        told = folder / f"{name}-0.32.0.dist-info" / "METADATA"
        told.parent.mkdir()
        told.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.32.0\n")
        return import_module(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield install
    for made in list(sys.modules):  # lm_eval's class holds on to the double that it was imported over
        if made.split(".")[0] in ("vllm", "litellm") or made.startswith("lm_eval.models.vllm"):
            del sys.modules[made]


# --- not installed


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vllm", r"generator=vllm needs the package vllm.*pip install -e \".*\[vllm\]\".*vllm serve"),
        ("litellm", r'generator=litellm needs the package litellm.*pip install "lm_eval\[litellm\]"'),
        ("litellm-chat-completions", r"needs the package litellm"),
    ],
)
def test_a_missing_package_is_one_message(name, said, monkeypatch):
    from lm_eval_rag.harness.generators import spec as spec_module

    find = spec_module.find_spec
    absent = {package for package, _ in PACKAGES.values()}
    monkeypatch.setattr(spec_module, "find_spec", lambda module: None if module in absent else find(module))
    with pytest.raises(UserError, match=said) as raised:
        LMGenerator(ModelSpec(name, {"model": "any", "pretrained": "any"})).generate(["p"], Decoding(), [0])
    assert "\n" not in str(raised.value)


# --- vLLM


@pytest.fixture(scope="module")
def fake_vllm(install):
    pytest.importorskip("transformers")
    return install("vllm", VLLM)


@pytest.fixture
def vllm(fake_vllm):
    fake_vllm.made.clear()
    return fake_vllm


def vllm_generator(folder, chat=False, system=None, **arguments):
    given = {"pretrained": str(folder), "dtype": "float32", "gpu_memory_utilization": 0.5, **arguments}
    return LMGenerator(ModelSpec("vllm", given, batch_size="auto"), chat=chat, seed=3, system=system)


def test_vllm_gets_its_arguments_and_token_ids(vllm, little_llama, reference):
    tokenizer = reference[1]
    generator = vllm_generator(little_llama, max_model_len=500)
    prompts = ["who visited", "Time who praised Rules", "what"]
    found = generator.generate(prompts, Decoding(7, ("\n", "END")), [0, 0, 0])
    (engine,) = vllm.made
    assert engine.arguments["model"] == str(little_llama) and engine.arguments["max_model_len"] == 500
    assert engine.arguments["gpu_memory_utilization"] == 0.5 and "device" not in engine.arguments
    ids = [tokenizer(prompt).input_ids for prompt in prompts]
    assert found == [f"{len(one)} tokens" for one in ids]  # in order, cut at the stop
    ((sent, sampling, _),) = engine.calls  # one batch: vLLM does its own batching
    assert sorted(one["prompt_token_ids"] for one in sent) == sorted(ids)
    for one in sampling:
        assert (one.max_tokens, one.temperature) == (7, 0.0) and {"\n", "END"} <= set(one.stop)
    assert generator.count_tokens(prompts[1]) == len(ids[1]) and generator.room(20) == 480


def test_vllm_draws_by_seed(vllm, little_llama):
    generator = vllm_generator(little_llama)
    generator.generate(["who", "who"], Decoding(7, ("\n",), 0.5), [0, 1])
    ((_, sampling, _),) = vllm.made[0].calls
    assert sorted(one.seed for one in sampling) == [3, 4] and {one.temperature for one in sampling} == {0.5}


def test_vllm_chats_with_a_system_message_and_a_lora(vllm, little_llama, reference):
    generator = vllm_generator(little_llama, chat=True, system="Time", lora_local_path="adapter")
    generator.generate(["who"], Decoding(), [0])
    ((sent, _, lora),) = vllm.made[0].calls
    said = reference[1].decode(sent[0]["prompt_token_ids"])
    assert said == "<|system|>Time<|user|>who<|assistant|>"
    assert vllm.made[0].arguments["enable_lora"] is True and lora.path == "adapter"


def test_vllm_gives_log_probabilities(vllm, little_llama, reference):
    before, both = (len(reference[1](text).input_ids) for text in ("who visited", "who visited Answer"))
    assert vllm_generator(little_llama).loglikelihood([("who visited", " Answer")]) == [-0.5 * (both - before)]


def test_vllm_is_not_fed_one_prompt_at_a_time():
    assert [_batch_size("vllm", given) for given in (None, 1, "1", "auto", 8)] == ["auto", "auto", "auto", "auto", 8]
    assert LMGenerator(ModelSpec("vllm", {}, batch_size="auto")).batch == 128


# --- litellm


@pytest.fixture(scope="module")
def fake_litellm(install):
    pytest.importorskip("openai")
    return install("litellm", LITELLM)


@pytest.fixture
def litellm(fake_litellm):
    fake_litellm.seen.clear()
    fake_litellm.failures.clear()
    return fake_litellm


def litellm_generator(name="litellm", system=None, tries=2):
    given = {"model": "openai/any", "max_retries": tries, "retry_wait": 0.01, "num_concurrent": 2}
    return LMGenerator(ModelSpec(name, given), seed=5, system=system)


@pytest.mark.parametrize("name", ["litellm", "litellm-chat", "litellm-chat-completions"])
def test_litellm_gets_messages(litellm, name):
    generator = litellm_generator(name, system="Be short.")
    assert generator.generate(["p", "q"], Decoding(7, ("\n",), 0.5), [0, 1]) == ["P", "Q"]
    sent = {payload["messages"][-1]["content"]: payload for payload in litellm.seen}
    for text, seed in (("p", 5), ("q", 6)):
        roles = [{"role": "system", "content": "Be short."}, {"role": "user", "content": text}]
        assert sent[text]["messages"] == roles and sent[text]["model"] == "openai/any"
        assert (sent[text]["max_tokens"], sent[text]["temperature"], sent[text]["seed"]) == (7, 0.5, seed)


def test_litellms_errors_are_tried_again_or_fail_their_question_alone(litellm):
    litellm.failures.append(litellm.RateLimitError("slow down"))
    assert litellm_generator().generate(["p"], Decoding(), [0]) == ["P"] and len(litellm.seen) == 2
    litellm.failures += [litellm.RateLimitError("slow\ndown")] * 2
    (failed,) = litellm_generator().generate(["p"], Decoding(), [0])
    assert isinstance(failed, CallError) and str(failed) == "generator, try 2 of 2: slow down"


def test_litellm_that_is_refused_ends_the_run_and_keeps_the_key(litellm):
    litellm.failures.append(litellm.AuthenticationError("wrong key sk-secret"))
    with pytest.raises(UserError, match="refused the request: AuthenticationError") as raised:
        litellm_generator().generate(["p"], Decoding(), [0])
    assert "sk-secret" not in str(raised.value) and len(litellm.seen) == 1


def test_litellm_does_not_take_a_base_url():
    with pytest.raises(UserError, match=r"gen_base_url is not used.*OPENAI_API_BASE.*local-chat-completions"):
        ModelSpec("litellm", {"model": "openai/any", "base_url": "http://127.0.0.1/v1"}).check()
