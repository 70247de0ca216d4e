"""A local folder as generator, through lm_eval's hf; what it writes is in test_generator_contract.py."""

import json
import random
import shutil

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.base import Decoding, cut
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.local import _drawing, continue_batch
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


def test_the_chat_template_takes_room(little_llama, plain):
    assert hf(little_llama, chat=True).room(10) == plain.room(10) - 2  # the two marks of the template


def test_a_model_without_chat_template_says_so(little_llama, tmp_path):
    folder = shutil.copytree(little_llama, tmp_path / "base")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match=r"has no chat template.*without --apply_chat_template"):
        hf(folder, chat=True).generate(["p"], Decoding(), [0])


def test_tokens_and_room_are_the_models(plain, direct):
    model, tokenizer = direct.model, direct.tokenizer
    assert [plain.count_tokens(prompt) for prompt in PROMPTS] == [len(tokenizer(p).input_ids) for p in PROMPTS]
    assert plain.room(32) == model.config.max_position_embeddings - 32


def test_counting_a_long_prompt_warns_of_nothing(little_llama, direct, monkeypatch):
    """transformers warns of texts longer than the context, which are only counted here, and never sent."""
    said = []
    monkeypatch.setattr("transformers.tokenization_utils_base.logger.warning", said.append)
    long = "Question " * 2 * direct.model.config.max_position_embeddings
    counting = hf(little_llama, max_length=32)
    for tokenizer in (counting.lm.tokenizer, direct.tokenizer):
        monkeypatch.setattr(tokenizer, "model_max_length", 32)
    assert counting.count_tokens(long) > 32 and not said
    direct.tokenizer(long)
    assert len(said) == 1  # what it would have said


# --- by our own rules


@pytest.fixture(scope="module")
def opinionated(little_llama, tmp_path_factory):
    """A checkpoint whose generation_config.json holds every kind of rule that would change a greedy text."""
    folder = tmp_path_factory.mktemp("opinionated") / "llama"
    shutil.copytree(little_llama, folder)
    rules = {
        "max_new_tokens": 3, "min_new_tokens": 3, "do_sample": True, "temperature": 1.7, "top_k": 3, "top_p": 0.5,
        "repetition_penalty": 1.9, "no_repeat_ngram_size": 2, "suppress_tokens": list(range(20, 200)), "num_beams": 3,
    }  # fmt: skip
    told = {**rules, "bos_token_id": 1, "eos_token_id": [2, 7], "pad_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(told))
    return folder


def test_a_checkpoints_own_rules_do_not_count_and_stay_as_they_are(opinionated, direct):
    generator = hf(opinionated)
    assert 7 not in [id_ for prompt in PROMPTS for id_ in direct.greedy(prompt, 30)[1]]  # its further end token
    found = generator.generate(PROMPTS, Decoding(30, ()), [0] * len(PROMPTS))
    assert found == [direct.greedy(prompt, 30)[0] for prompt in PROMPTS]
    kept = generator.lm.model.generation_config
    assert (kept.max_new_tokens, kept.repetition_penalty, kept.num_beams) == (3, 1.9, 3)  # what training would save


def test_every_end_token_of_the_checkpoint_ends_a_text(little_llama, direct, tmp_path):
    text, ids = direct.greedy(PROMPTS[0], 9)
    end = next(id_ for id_ in ids[1:] if id_ != ids[0])
    folder = shutil.copytree(little_llama, tmp_path / "llama")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, end], "pad_token_id": 0}))
    wanted = direct.tokenizer.decode(ids[: ids.index(end)], skip_special_tokens=True)
    assert hf(folder).generate(PROMPTS[:1], Decoding(9, ()), [0]) == [wanted] and text.startswith(wanted)


def test_what_was_written_and_whether_it_was_cut_off(plain, direct):
    cut_off, stopped = (
        continue_batch(plain.lm, PROMPTS[:1], Decoding(9, stops), [0])[0]
        for stops in ((), (direct.greedy(PROMPTS[0], 9)[0][3:5],))
    )
    assert (cut_off.tokens, cut_off.finished) == (9, False)
    assert stopped.finished and stopped.tokens < 9 and stopped.text == direct.greedy(PROMPTS[0], 9)[0][:3]


def test_rows_that_end_by_different_stop_strings_end_the_batch(plain, direct):
    """lm_eval's rule goes on until all rows hold the same one."""
    texts = [direct.greedy(prompt, 60)[0] for prompt in PROMPTS[:2]]
    stops = tuple(text[8:11] for text in texts)
    passes = []
    hook = plain.lm.model.register_forward_hook(lambda *parts: passes.append(1))
    try:
        found = plain.generate(PROMPTS[:2], Decoding(400, stops), [0, 0])
    finally:
        hook.remove()
    assert found == [cut(text, Decoding(stop=stops)) for text in texts] and len(passes) < 30


def test_a_stop_string_that_is_a_special_token_ends_a_text(plain, direct):
    ids = direct.greedy(PROMPTS[4], 60)[1]
    mark = direct.tokenizer.convert_tokens_to_ids("<|assistant|>")
    assert mark in ids  # which no decoded text shows
    wanted = direct.tokenizer.decode(ids[: ids.index(mark)], skip_special_tokens=True)
    assert plain.generate(PROMPTS[4:], Decoding(60, ("<|assistant|>",)), [0]) == [wanted]


def test_thoughts_are_left_out_and_stop_strings_in_them_end_nothing(little_llama, direct):
    text = direct.greedy(PROMPTS[0], 30)[0]
    end, stop = text[9:12], text[2:4]
    after = text.split(end)[-1].lstrip()
    found = hf(little_llama, think_end_token=end).generate(PROMPTS[:1], Decoding(30, (stop,)), [0])
    assert found == [cut(after, Decoding(stop=(stop,)))] and not after.startswith(text[:4])


def test_a_model_that_thinks_gets_room_and_a_thought_that_is_cut_off_is_no_answer(little_llama, direct):
    text = direct.greedy(PROMPTS[0], 30)[0]
    end = text[9:12]
    thinks = {"thinking_tokens": 20, "think_end_token": end}
    (found,) = hf(little_llama, **thinks).complete(PROMPTS[:1], Decoding(10, ()), [0])
    assert found.text == text.split(end)[-1].lstrip()  # as with 30 tokens
    (cut_off,) = hf(little_llama, **{**thinks, "think_end_token": "never said"}).complete(
        PROMPTS[:1], Decoding(10), [0]
    )
    assert (cut_off.text, cut_off.finish) == ("", "length")
    assert hf(little_llama, thinking_tokens=5).spec.resolved["think_end_token"] == "</think>"


def test_a_stop_string_that_is_a_token_of_its_own_ends_no_thought(little_llama, direct):
    ids = direct.greedy(PROMPTS[4], 60)[1]
    mark = ids.index(direct.tokenizer.convert_tokens_to_ids("<|assistant|>"))
    generator = hf(little_llama, thinking_tokens=50, think_end_token="never said")
    (found,) = generator.complete(PROMPTS[4:], Decoding(10, ("<|assistant|>",)), [0])
    assert found.completion_tokens > mark


def test_samples_follow_the_models_distribution(plain, direct):
    """4,000 first tokens at temperature 0.7 against softmax(logits / 0.7), by chi-squared."""
    torch, stats = pytest.importorskip("torch"), pytest.importorskip("scipy.stats")
    n, temperature = 4000, 0.7
    with torch.no_grad():
        logits = direct.model(torch.tensor([direct.ids("Question")])).logits[0, -1].double()
    expected = n * torch.softmax(logits / temperature, -1)
    rows = logits.expand(n, -1).float()
    drawn = _drawing([random.Random(f"{i}") for i in range(n)], temperature)(None, rows).argmax(-1)
    counts = torch.bincount(drawn, minlength=len(expected)).double()
    often = expected >= 10
    observed = torch.cat([counts[often], counts[~often].sum()[None]])
    wanted = torch.cat([expected[often], expected[~often].sum()[None]])
    assert often.sum() > 5 and stats.chisquare(observed.numpy(), wanted.numpy()).pvalue > 0.001
    assert counts[expected < 1e-3].sum() <= 2


def test_an_encoder_decoder_writes_as_many_tokens_as_it_may(little_llama, tmp_path):
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    folder = tmp_path / "t5"
    tokenizer = transformers.AutoTokenizer.from_pretrained(little_llama)
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.T5Config(
            vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=48, num_layers=1, num_heads=2, eos_token_id=2,
            pad_token_id=0, decoder_start_token_id=0, initializer_factor=5.0,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config).eval()
    model.generation_config.max_new_tokens = 3
    model.save_pretrained(folder)
    encoded = tokenizer(PROMPTS[0], return_tensors="pt").input_ids
    ids = [0]
    with torch.no_grad():
        while len(ids) < 13:
            ids.append(int(model(input_ids=encoded, decoder_input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    assert 2 not in ids
    found = hf(folder).generate(PROMPTS[:1], Decoding(12, ()), [0])
    assert found == [tokenizer.decode(ids[1:], skip_special_tokens=True)]


def test_an_empty_prompt_is_answered(plain, direct):
    wanted = [direct.greedy(text, 4)[0] for text in ("<|begin|>", "who")]  # it has no tokens: the begin token stands in
    assert plain.generate(["", "who"], Decoding(4, ()), [0, 0]) == wanted
