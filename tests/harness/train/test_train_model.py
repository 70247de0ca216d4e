"""A model in training: the tokens that are learnt, small steps, tokenizers that lack something, 4 bits."""

import logging
from dataclasses import replace

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import Prompt, Template
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.train.answer_loss import answer_loss
from lm_eval_rag.harness.train.generator_model import load
from lm_eval_rag.harness.train.precise_adamw import precise_adamw
from lm_eval_rag.harness.train.presets import Preset
from lm_eval_rag.harness.train.training_prompts import GeneratorQuestion, Row

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

PRESET = Preset(5e-3, warmup=1, batch_size=4, epochs=2, lora=False, four_bit=False, eval_every=1)
TEXT = "Question: who visited ?\nAnswer:"
PARTS = Prompt(Template("v", "", "", "", "", "", "Question: {query}", "Answer:"), "who visited ?")
ROW = Row(GeneratorQuestion("t", Query("q", "who visited ?"), ("Vale",)), TEXT, "Vale", 0, "v", True, PARTS)


@pytest.fixture(scope="module")
def loaded(little_llama):
    return load(str(little_llama), PRESET, dtype="float32", device="cpu", seed=0)


def test_the_loss_is_on_the_answer_and_the_end_token_alone(loaded):
    row = loaded.encode(ROW)
    learnt = [label for label in row["labels"] if label != -100]
    assert loaded.tokenizer.decode(learnt) == " Vale<|end|>"
    read, _ = loaded.generator.lm.tok_batch_encode([ROW.prompt])  # the tokens that an evaluation gives the model
    assert row["input_ids"] == read[0].tolist() + learnt
    assert row["labels"][: read.shape[1]] == [-100] * read.shape[1]


def test_a_base_with_a_chat_template_learns_raw_prompts(loaded):
    """As the checkpoint will be asked: its note holds the version of the prompt."""
    assert loaded.tokenizer.chat_template and not loaded.generator.chat
    assert loaded.generator.wrap(ROW.prompt) == ROW.prompt


def test_an_answer_that_melts_into_the_prompt_is_encoded_by_itself(loaded, monkeypatch):
    whole = loaded.generator.lm.tok_encode
    monkeypatch.setattr(loaded.generator.lm, "tok_encode", lambda t: [7] if t.endswith("Vale") else whole(t))
    assert loaded.encode(ROW)["input_ids"][: len(whole(ROW.prompt))] == whole(ROW.prompt)


def test_the_loss_is_the_mean_over_the_labels_of_all_rows(loaded):
    rows = [
        loaded.encode(replace(ROW, prompt=TEXT * n, answer=answer)) for n, answer in ((1, "Vale"), (3, "Ada of Ree"))
    ]
    longest = max(len(row["input_ids"]) for row in rows)
    padded = {
        name: torch.tensor([row[key] + [fill] * (longest - len(row[key])) for row in rows])
        for name, key, fill in (("input_ids", "input_ids", 0), ("labels", "labels", -100))
    }
    padded["attention_mask"] = (padded["input_ids"] != 0).long()
    surprises = []
    for row in rows:
        shares = loaded.model(torch.tensor([row["input_ids"]])).logits.float().softmax(-1)[0]
        surprises += [-shares[i - 1, label].log() for i, label in enumerate(row["labels"]) if label != -100]
    assert len({len(row["input_ids"]) for row in rows}) == 2 and len(surprises) > 8
    assert answer_loss(loaded.model, padded).item() == pytest.approx(sum(surprises).item() / len(surprises), rel=1e-4)
    assert answer_loss(loaded.model, padded, 100).item() == pytest.approx(sum(surprises).item() / 100, rel=1e-4)


def test_small_steps_are_not_lost_in_bfloat16():
    half = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    whole = torch.nn.Parameter(torch.ones(3))
    tuned, reference = precise_adamw([half], 1e-4), torch.optim.AdamW([whole], lr=1e-4, weight_decay=0.0)
    for _ in range(100):
        half.grad, whole.grad = torch.ones_like(half), torch.ones_like(whole)
        tuned.step()
        reference.step()
    assert torch.equal(half.detach(), whole.detach().bfloat16()) and half[0] < 1
    kept = tuned.state_dict()
    other = torch.nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    again = precise_adamw([other], 1e-4)
    again.load_state_dict(kept)
    assert torch.equal(again.originals[0], tuned.originals[0]) and torch.equal(other.detach(), half.detach())
    tuned.zero_grad()
    assert half.grad is None


def copy_without(little_llama, tmp_path, token):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(little_llama)
    setattr(tokenizer, token, None)
    for path in little_llama.glob("*"):
        if path.name in ("config.json", "model.safetensors", "generation_config.json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_a_tokenizer_without_padding_pads_with_its_end(little_llama, tmp_path, caplog):
    base = copy_without(little_llama, tmp_path, "pad_token")
    with caplog.at_level(logging.WARNING):
        found = load(str(base), PRESET, dtype="float32", device="cpu", seed=0)
    assert found.tokenizer.pad_token_id == found.tokenizer.eos_token_id
    assert "has no padding token; the end token is used" in caplog.text
    assert found.encode(ROW)["labels"][-1] == found.tokenizer.eos_token_id  # the end is learnt all the same


def test_a_base_without_a_tokenizer_is_refused_in_one_line(little_llama, tmp_path):
    for path in little_llama.glob("*"):
        if path.name in ("config.json", "model.safetensors", "generation_config.json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(UserError, match=r"has no tokenizer, so its model cannot read a text") as raised:
        load(str(tmp_path), PRESET, dtype="float32", device="cpu", seed=0)
    assert "\n" not in str(raised.value)


def test_a_tokenizer_without_end_is_refused(little_llama, tmp_path):
    with pytest.raises(UserError, match=r"has no end token.*eos_token"):
        load(str(copy_without(little_llama, tmp_path, "eos_token")), PRESET, dtype="float32", device="cpu", seed=0)


def test_an_evaluation_leaves_the_gradients_of_four_bits_as_they_are(wider_llama):
    preset = replace(PRESET, lora=True, four_bit=True, lora_dropout=0.0)
    loaded = load(str(wider_llama), preset, dtype="float32", device="cpu", seed=0)
    row = {name: torch.tensor([ids]) for name, ids in loaded.encode(ROW).items()}
    learnt = next(value for name, value in loaded.model.named_parameters() if "lora_B" in name)  # in the first layer

    def gradient():
        loaded.model.zero_grad()
        loaded.model.train()
        loaded.model(**row).loss.backward()
        return learnt.grad.clone()

    before = gradient()
    loaded.answer([ROW], Decoding(max_tokens=2))
    assert before.abs().max() > 0 and torch.allclose(before, gradient(), rtol=1e-4)
