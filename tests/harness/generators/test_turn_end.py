"""What a chat template puts around a reply: the token after it ends it, the white space before it is scored with it."""

import asyncio
import json
import shutil

import pytest

from lm_eval_rag.harness.backends.generation import LoglikelihoodBackend, OpenStream
from lm_eval_rag.harness.core.asks import Loglikelihood
from lm_eval_rag.harness.core.prompts import Messages
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.generators.turn_end import turn_end

PROMPT = "who visited"
LLAMA_3 = (  # its shape: a header, the text, the end of the turn
    "{% for m in messages %}{{ '<|user|>' + m['role'] + '\n\n' + m['content'] | trim + '<|pad|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


@pytest.fixture
def tokenizer(little_llama):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(little_llama)  # <|pad|> 0, <|begin|> 1, <|end|> 2, <|user|> 3, <|assistant|> 4


@pytest.mark.parametrize(
    ("template", "end"),
    [
        (None, None),  # the tokenizer's own puts nothing after a reply
        (LLAMA_3, 0),
        ("{% for m in messages %}{{ m['content'] }} <|end|>\n{% endfor %}", 2),  # after a space, as Llama 2's
        ("{% for m in messages %}{{ m['content'] }}<|pad|>\n<|end|>{% endfor %}", 0),  # the first of two, as Phi 3's
        ("{% for m in messages %}{{ m['content'] }}\nUser: {% endfor %}", None),  # no token of its own
        ("{% for m in messages %}{{ m['role'] }}<|pad|>{% endfor %}", None),  # shows no reply
        ("{{ raise_exception('no') }}", None),
        ("{{ messages.nothing.at_all }}", None),
    ],
)
def test_the_template_says_what_ends_a_turn(tokenizer, template, end):
    assert turn_end(tokenizer, template) == end
    if template is not None:
        tokenizer.chat_template = template
        assert turn_end(tokenizer) == end


def test_a_tokenizer_without_template_has_no_end(tokenizer):
    tokenizer.chat_template = None
    assert turn_end(tokenizer) is None and turn_end(object()) is None


def template_of(asked, replied, opened=""):
    """A template: what it makes of a question, of a reply, and the opening of the model's turn."""
    turn = f"{{% if m['role'] == 'user' %}}{asked}{{% else %}}{replied}{{% endif %}}"
    return f"{{% for m in messages %}}{turn}{{% endfor %}}{{% if add_generation_prompt %}}{opened}{{% endif %}}"


ASKED = "{{ m['content'] }}"


@pytest.mark.parametrize(
    ("template", "start"),
    [
        (template_of(ASKED, "<|assistant|>\n{{ m['content'] }}", "{{ '<|assistant|>\n' }}"), ""),  # ChatML's
        (template_of(ASKED, "<|assistant|>\n{{ m['content'] }}", "<|assistant|>"), "\n"),  # GLM-4's
        (template_of(f"{ASKED}[/INST]", " {{ m['content'] }}"), " "),  # Mistral's
        (template_of(ASKED, "<|assistant|><t></t>{{ m['content'] }}", "<|assistant|>"), ""),  # an empty thought
        (template_of(ASKED, "<|assistant|>{{ m['content'] }}", "<|assistant|><t>"), ""),
        (template_of(ASKED, "{{ raise_exception('no') }}", "<|assistant|>"), ""),
    ],
)
def test_the_template_says_what_a_reply_begins_with(little_llama, tmp_path, template, start):
    folder = shutil.copytree(little_llama, tmp_path / "llama")
    (folder / "chat_template.jinja").write_text(template)
    generator = LMGenerator(ModelSpec("hf", {"pretrained": str(folder), "dtype": "float32"}), chat=True)
    assert generator.as_written("who", " Bo") == f"{start}Bo"
    assert generator.as_written("who", "Bo") == "Bo" and generator.as_written("who", "  Bo") == f"{start} Bo"
    assert generator.as_written(Messages("", "who", "It was"), " Bo") == " Bo"  # it goes on in its reply
    generator.chat = False
    assert generator.as_written("who", " Bo") == " Bo"


def test_the_probability_of_a_reply_in_a_chat_is_that_of_what_the_model_writes(little_llama, direct, direct_chat):
    def asked(chat):
        generator = LMGenerator(ModelSpec("hf", {"pretrained": str(little_llama), "dtype": "float32"}), chat=chat)

        async def main():
            backend = LoglikelihoodBackend(OpenStream(generator))
            served = await backend.answer(Query("q", "q"), Loglikelihood("who", " visited"))
            await backend.close()
            return served.value

        return asyncio.run(main())

    assert asked(True) == pytest.approx(direct_chat.log_probability("who", "visited"), abs=1e-4)
    assert asked(False) == pytest.approx(direct.log_probability("who", " visited"), abs=1e-4)


@pytest.fixture(scope="module")
def ends_early(little_llama, direct_chat, tmp_path_factory):
    """(folder, id, tokens before it): a checkpoint whose template ends turns with a token that it writes by itself.

    Neither its tokenizer nor its generation_config.json names that token as an end.
    """
    _, ids = direct_chat.greedy(PROMPT, 30)
    written = direct_chat.tokenizer.convert_ids_to_tokens(ids)
    at = next(
        i for i in range(3, 30) if ids[i] not in ids[:i] and ids[i] > 4 and written[i] not in direct_chat.wrap(PROMPT)
    )
    folder = shutil.copytree(little_llama, tmp_path_factory.mktemp("turns") / "llama")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    end = tokenizer.convert_ids_to_tokens(ids[at])
    tokenizer.add_special_tokens({"additional_special_tokens": [end]})
    tokenizer.chat_template = (
        "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] }}"
        "{% if m['role'] == 'assistant' %}{{ END }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    ).replace("END", json.dumps(end))
    tokenizer.save_pretrained(folder)
    assert tokenizer.convert_tokens_to_ids(end) == ids[at] != tokenizer.eos_token_id
    return folder, ids[at], at


def test_an_hf_reply_ends_with_its_turn(ends_early, direct_chat):
    folder, _, at = ends_early
    spec = ModelSpec("hf", {"pretrained": str(folder), "dtype": "float32"}, device="cpu")
    (reply,) = LMGenerator(spec, chat=True).complete([PROMPT], Decoding(30, ()), [0])
    assert (reply.completion_tokens, reply.finish) == (at, "stop")
    assert direct_chat.greedy(PROMPT, 30)[0].startswith(reply.text) and reply.text
    (raw,) = LMGenerator(spec, chat=False).complete([f"<|user|>{PROMPT}<|assistant|>"], Decoding(30, ()), [0])
    assert raw.completion_tokens == 30  # raw text has no turns


@pytest.mark.usefixtures("vllm")
def test_a_vllm_reply_ends_with_its_turn(ends_early, vllm):
    folder, end, at = ends_early
    generator = LMGenerator(ModelSpec("vllm", {"pretrained": str(folder)}, batch_size="auto"), chat=True)
    (reply,) = generator.complete([PROMPT], Decoding(30, ("<|user|>",)), [0])
    ((_, sampling, _),) = vllm.made[0].calls
    assert sampling.stop_token_ids == [end, 3] and sampling.skip_special_tokens
    assert (reply.finish, reply.completion_tokens) == ("stop", at)
    raw = LMGenerator(ModelSpec("vllm", {"pretrained": str(folder)}, batch_size="auto"), chat=False)
    raw.complete([PROMPT], Decoding(3, ("<|user|>",)), [0])
    ((_, sampling, _),) = vllm.made[1].calls
    assert sampling.stop_token_ids == [3]


@pytest.mark.usefixtures("vllm")
def test_a_vllm_model_that_thinks_first_keeps_its_marks_and_ends_with_its_turn(ends_early, vllm):
    folder, end, _ = ends_early
    given = {"pretrained": str(folder), "think_end_token": "<|pad|>"}
    generator = LMGenerator(ModelSpec("vllm", given, batch_size="auto"), chat=True)
    options = generator.options(Decoding(30, ("<|user|>",)), 0)
    assert options["stop_token_ids"] == [end] and "skip_special_tokens" not in options


def test_vllms_chats_have_another_fingerprint_than_before(ends_early):
    """Their kept replies may be longer than a turn."""
    from lm_eval_rag.harness.common.extras import version
    from lm_eval_rag.harness.core.journal import digest

    for name, chat, marks in (("vllm", True, ["turn ends"]), ("vllm", False, []), ("hf", True, ["own rules"])):
        generator = LMGenerator(ModelSpec(name, {"pretrained": str(ends_early[0])}), chat=chat)
        whole = [generator.spec.identity, chat, 0, None, version("lm_eval"), *marks]
        assert generator.fingerprint == digest(whole)
