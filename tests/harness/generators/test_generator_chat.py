"""When prompts go through a chat template: by default where the tokenizer has one, never where raw text was learnt."""

import json
import logging
import shutil

import pytest

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.chat import form_of, has_template
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import EMBEDDED, ModelSpec
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.methods.rulerag_icl import rulerag_icl

TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}"


def checkpoint(folder, *, file=None, config=None, note=None):
    """A folder with what the decision looks at."""
    folder.mkdir(parents=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(config or {}))
    if file:
        (folder / file).write_text(TEMPLATE)
    if note:
        write_note(folder, Note("generator", "rgft", prompt=note))
    return folder


@pytest.mark.parametrize(
    ("made", "chat"),
    [
        ({}, False),
        ({"file": "chat_template.jinja"}, True),
        ({"file": "chat_template.json"}, True),
        ({"config": {"chat_template": TEMPLATE}}, True),
        ({"config": {"chat_template": [{"name": "default", "template": TEMPLATE}]}}, True),
        ({"config": {"chat_template": None}}, False),
        ({"file": "chat_template.jinja", "note": "ruleqa-1"}, False),  # what train generator tuned reads raw text
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["hf", "vllm"])
def test_the_tokenizer_decides(tmp_path, made, chat, name):
    spec = ModelSpec(name, {"pretrained": str(checkpoint(tmp_path / "model", **made))})
    assert LMGenerator(spec).chat is chat
    assert LMGenerator(spec, chat=True).chat is True and LMGenerator(spec, chat=False).chat is False


@pytest.mark.parametrize("thinks", [False, True])
def test_a_template_that_begins_a_thought_is_named(little_llama, tmp_path, caplog, thinks):
    folder = shutil.copytree(little_llama, tmp_path / f"thinker{thinks}")
    (folder / "chat_template.jinja").write_text(TEMPLATE + "{{ '<think>\n' }}")
    given = {"pretrained": str(folder), **({"thinking_tokens": 9} if thinks else {})}
    generator = LMGenerator(ModelSpec("hf", given))
    assert [generator.wrap("who") for _ in range(2)] == ["who<think>\n"] * 2
    assert caplog.text.count("begins a thought. Give gen_thinking_tokens=4096") == (0 if thinks else 1)


def test_another_tokenizer_and_the_base_of_an_adapter_decide(tmp_path):
    plain = checkpoint(tmp_path / "plain")
    chatty = checkpoint(tmp_path / "chatty", file="chat_template.jinja")
    assert form_of(ModelSpec("hf", {"pretrained": str(plain), "tokenizer": str(chatty)})).chat
    adapter = checkpoint(tmp_path / "adapter")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(chatty)}))
    (adapter / "adapter_model.bin").write_bytes(b"x")
    assert form_of(ModelSpec("hf", {"peft": str(adapter)})).chat
    write_note(adapter, Note("generator", "rgft", prompt="ruleqa-1"))
    assert str(form_of(ModelSpec("hf", {"peft": str(adapter)}))) == "raw text: it was tuned on raw prompts"


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        *((name, {}, "raw text: the tokenizer has no chat template") for name in EMBEDDED),
        ("local-completions", {"base_url": "http://127.0.0.1"}, "raw text: the API takes text"),
        ("local-chat-completions", {"base_url": "http://127.0.0.1"}, "chat: the API takes messages"),
        ("hf", {"pretrained": "nobody/has-this"}, "raw text: the tokenizer has no chat template"),
        ("dummy", {}, "raw text: the tokenizer has no chat template"),
    ],
)
def test_other_kinds(name, arguments, wanted):
    if name in ("tiny_rgft", "tiny_ssft"):
        wanted = "raw text: it was tuned on raw prompts"
    assert str(form_of(ModelSpec(name, arguments))) == wanted


def test_the_form_is_said_once_and_is_part_of_the_fingerprint(tmp_path, caplog):
    spec = ModelSpec("hf", {"pretrained": str(checkpoint(tmp_path / "model", file="chat_template.jinja"))})
    with caplog.at_level(logging.INFO, logger="lm_eval_rag"):
        generator = LMGenerator(spec)
        assert generator.chat and generator.chat
        LMGenerator(spec, chat=True).chat  # noqa: B018 - asked for: nothing to say
    said = "Prompts of generator=hf are sent as chat: the tokenizer has a chat template (chat=False turns it off)."
    assert [record.getMessage() for record in caplog.records] == [said]
    assert len({LMGenerator(spec, chat=chat).fingerprint for chat in (None, True, False)}) == 2


def test_chat_is_a_model_argument(tmp_path, little_llama):
    def form(**given):
        made = read_arguments("rulerag_icl", rulerag_icl, {"gen_pretrained": str(little_llama), **given})
        return str(made.generator.form)

    assert form() == "chat: the tokenizer has a chat template (chat=False turns it off)"
    assert form(chat=False) == "raw text: chat=False" and form(chat=True) == "chat: asked for"
    with pytest.raises(UserError, match="chat='no' is not allowed"):
        form(chat="no")
    given = {"generator": "local-chat-completions", "gen_base_url": "http://127.0.0.1", "gen_model": "m", "chat": False}
    with pytest.raises(UserError, match=r"chat=False is not possible with generator=local-chat-completions"):
        read_arguments("rulerag_icl", rulerag_icl, given)


def test_a_damaged_tokenizer_config_is_named(tmp_path, little_llama):
    folder = shutil.copytree(little_llama, tmp_path / "model")
    (folder / "chat_template.jinja").unlink()
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(UserError, match=r"tokenizer_config.json is damaged"):
        has_template(ModelSpec("hf", {"pretrained": str(folder)}))
