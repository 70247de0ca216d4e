"""Generators by name: keys, arguments, packages, fingerprints."""

import json
import shutil

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec

CHAT = "local-chat-completions"


def fingerprint(name=CHAT, seed=0, chat=False, **arguments):
    return LMGenerator(ModelSpec(name, arguments), chat=chat, seed=seed).fingerprint


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


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (CHAT, "yes", r"gen_logprobs='yes' is not allowed: give True or False"),
        (CHAT, 5, r"gen_logprobs=5 is not allowed"),
        ("litellm", True, r"not for generator=litellm, whose API has none"),
        ("hf", True, r"not for generator=hf, which gives those of any text.*Leave it out"),
        ("local-completions", True, r"not for generator=local-completions, which gives those of any text"),
        ("anthropic-chat", True, r"not for generator=anthropic-chat, whose API has none"),
    ],
)
def test_log_probabilities_of_replies_are_for_chat_apis(name, given, message):
    with pytest.raises(UserError, match=message):
        ModelSpec(name, {"logprobs": given, "model": "anthropic/any" if name == "litellm" else "any"}).check()
    for fine in (True, False):
        ModelSpec(CHAT, {"model": "any", "base_url": "http://x/v1/chat/completions", "logprobs": fine}).check()


@pytest.mark.parametrize("name", ["hf", CHAT])
def test_what_cannot_be_built_says_so(name, tmp_path):
    given = (
        {"pretrained": str(tmp_path)}
        if name == "hf"
        else {"model": "any", "base_url": "http://x/v1", "timeout": "soon"}
    )
    with pytest.raises(UserError, match=rf"generator={name} with .* cannot be built.*gen_NAME=VALUE"):
        LMGenerator(ModelSpec(name, given)).generate(["p"], Decoding(), [0])


URL = {"model": "any", "base_url": "http://x/v1/chat/completions"}


@pytest.mark.parametrize(
    ("given", "near"), [("max_tokns", "gen_max_gen_toks"), ("num_concurent", "gen_num_concurrent")]
)
def test_an_argument_that_no_server_knows_is_refused(given, near):
    with pytest.raises(UserError, match=rf"Unknown argument 'gen_{given}'.*{near}.*gen_extra_body"):
        ModelSpec(CHAT, {**URL, given: 9}).check()


@pytest.mark.parametrize("given", [{"top_k": 5}, '{"top_k": 5}'])
def test_fields_of_a_request_of_ones_own(given):
    spec = ModelSpec(CHAT, {**URL, "extra_body": given})
    spec.check()
    assert spec.extra_body == {"top_k": 5}
    assert fingerprint(**spec.arguments) != fingerprint(**URL)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (CHAT, "top_k=5", "give JSON, such as"),
        (CHAT, "[5]", "give JSON, such as"),
        (CHAT, 5, "give JSON, such as"),
        (CHAT, {"temperature": 1}, "sets temperature, which the method or the task decides"),
        (CHAT, '{"stop": [], "model": "b"}', "sets model, stop, which"),
        ("hf", {"top_k": 5}, "is for generators behind an API, not for generator=hf"),
    ],
)
def test_fields_that_are_not_allowed(name, given, message):
    with pytest.raises(UserError, match=message):
        ModelSpec(name, {"extra_body": given}).check()


# --- fingerprints


@pytest.mark.parametrize(
    "other", [{"model": "b"}, {"temperature": 1}, {"seed": 1}, {"chat": True, "name": "hf"}, {"name": "hf"}], ids=str
)
def test_what_changes_answers_changes_the_fingerprint(other):
    base = {"name": "hf"} if "chat" in other else {}
    assert fingerprint(**base, model="a") != fingerprint(**{**base, "model": "a", **other})


def test_log_probabilities_that_are_not_asked_for_change_nothing():
    assert fingerprint(model="a", logprobs=False) == fingerprint(model="a") != fingerprint(model="a", logprobs=True)


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
    from lm_eval_rag.harness.generators import spec as spec_module

    read, content = [], spec_module.contents
    monkeypatch.setattr(spec_module, "contents", lambda folder: read.append(folder) or content(folder))
    generator = LMGenerator(ModelSpec("hf", {"pretrained": str(tmp_path)}))
    assert len({generator.fingerprint for _ in range(5)}) == 1 and len(read) == 1
    generator.chat = True  # lm_eval says so only once the model is made
    assert generator.fingerprint != LMGenerator(ModelSpec("hf", {"pretrained": str(tmp_path)})).fingerprint


@pytest.mark.parametrize("name", [CHAT, "local-completions"])
def test_a_server_is_told_which_model(name):
    """lm_eval would send ``"model": null``, and the results would not name the model."""
    with pytest.raises(UserError, match=f"generator={name} needs gen_model="):
        ModelSpec(name, {"base_url": "http://127.0.0.1:1/v1"}).check()
    ModelSpec(name, {"base_url": "http://127.0.0.1:1/v1", "model": "any"}).check()


@pytest.mark.parametrize("key", ["pretrained", "peft", "tokenizer"])
def test_a_path_without_a_checkpoint_is_no_name_of_the_hub(tmp_path, key):
    with pytest.raises(UserError, match=f"gen_{key}=.*gone: this folder does not exist. Give a folder, or ORG/NAME"):
        ModelSpec("hf", {"pretrained": "org/name", key: str(tmp_path / "gone")}).check()
    ModelSpec("hf", {"pretrained": str(tmp_path)}).check()
