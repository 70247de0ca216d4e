"""Packages that are not installed, and litellm: lm_eval's own class over a double of it."""

import sys
from importlib import import_module
from textwrap import dedent

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.packages import PACKAGES
from lm_eval_rag.harness.generators.spec import ModelSpec

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
    for made in [name for name in sys.modules if name.split(".")[0] == "litellm"]:
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
    from lm_eval_rag.harness.generators import packages as packages_module

    find = packages_module.find_spec
    absent = {package for package, _ in PACKAGES.values()}
    monkeypatch.setattr(packages_module, "find_spec", lambda module: None if module in absent else find(module))
    with pytest.raises(UserError, match=said) as raised:
        LMGenerator(ModelSpec(name, {"model": "any", "pretrained": "any"})).generate(["p"], Decoding(), [0])
    assert "\n" not in str(raised.value)


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
