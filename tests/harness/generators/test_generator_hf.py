"""A local folder as generator, through lm_eval's hf: it says what the model says."""

import shutil

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec

PROMPTS = ["what does who visited ?", "Question", "Time Time who praised Rules", "Answer who ?", "Documents visited"]


def hf(folder, chat=False, **arguments):
    given = {"pretrained": str(folder), "dtype": "float32", **arguments}
    return LMGenerator(ModelSpec("hf", given, batch_size=2, device="cpu"), chat=chat)


def test_without_a_gpu_it_is_on_the_processor(little_llama, monkeypatch):
    """lm_eval's own default is cuda, also where there is none."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    made = LMGenerator(ModelSpec("hf", {"pretrained": str(little_llama), "dtype": "float32"}))
    assert made.lm.device.type == "cpu"


@pytest.fixture(scope="module")
def plain(little_llama):
    return hf(little_llama)


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
