"""Attention of single tokens on a CPU: the formula, and the same texts as with torch's kernel."""

from types import SimpleNamespace

import pytest

from lm_eval_rag.harness.generators import cpu_steps
from lm_eval_rag.harness.generators.cpu_steps import NAME, attend, quicken

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.mark.parametrize("heads", [2, 6])
@pytest.mark.parametrize("kind", ["bool", "numbers", "none"])
def test_one_token_attends_as_the_formula_says(heads, kind):
    generator = torch.Generator().manual_seed(heads)
    query, key, value = (torch.randn(3, n, m, 8, generator=generator) for n, m in ((heads, 1), (2, 11), (2, 11)))
    seen = torch.rand(3, 1, 1, 13, generator=generator) < 0.7  # longer than what is there, as of a static cache
    seen[..., 10] = True
    bias = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))
    mask = {"bool": seen, "numbers": bias, "none": None}[kind]
    with torch.no_grad():
        found, weights = attend(None, query, key, value, mask, scaling=0.5)
    assert found.shape == (3, 1, heads, 8) and weights is None
    for row in range(3):
        for head in range(heads):
            place = head // (heads // 2)  # heads that share a key stand together
            logits = 0.5 * key[row, place] @ query[row, head, 0]
            if kind != "none":
                logits[~seen[row, 0, 0, :11]] = float("-inf")
            expected = logits.softmax(-1) @ value[row, place]
            torch.testing.assert_close(found[row, 0, head], expected)


def test_the_texts_are_those_of_torchs_kernel(little_llama, monkeypatch):
    model = transformers.AutoModelForCausalLM.from_pretrained(little_llama, dtype=torch.float32)
    ids = torch.randint(5, model.config.vocab_size, (4, 30), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, :12] = mask[3, :25] = 0
    options = {"attention_mask": mask, "max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    assert model.config._attn_implementation == "sdpa"
    plain = model.generate(ids, **options)
    quicken(model)
    quicken(model)
    assert model.config._attn_implementation == NAME
    lengths = []
    monkeypatch.setattr(transformers.AttentionInterface, "_global_mapping", mapping := {
        **transformers.AttentionInterface._global_mapping,
        NAME: lambda *given, **more: lengths.append(given[1].shape[2]) or attend(*given, **more),
    })  # fmt: skip
    assert torch.equal(model.generate(ids, **options), plain) and NAME in mapping
    layers = model.config.num_hidden_layers
    assert lengths == [30] * layers + [1] * layers * 11


@pytest.mark.parametrize("change", [{"attention": "eager"}, {"device": "cuda"}, {"interface": False}])
def test_other_models_stay_as_they_are(change):
    given = {"attention": "sdpa", "device": "cpu", "interface": True, **change}
    model = SimpleNamespace(
        config=SimpleNamespace(_attn_implementation=given["attention"]),
        device=SimpleNamespace(type=given["device"]),
        _supports_attention_backend=given["interface"],
    )
    quicken(model)  # would call a function that this model lacks
    assert model.config._attn_implementation == given["attention"]


def test_what_it_does_not_know_is_left_to_torch(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "transformers.integrations.sdpa_attention.sdpa_attention_forward",
        lambda *given, **more: asked.append(more) or (None, None),
    )
    token, keys = torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 5, 4)
    with torch.no_grad():
        attend(None, token, keys, keys, None, position_bias=torch.zeros(1))
        attend(None, keys, keys, keys, None)
        attend(None, token, keys, keys, torch.zeros(1, 2, 1, 5))  # a mask for each head
    attend(None, token, keys, keys, None)  # while gradients are taken
    assert len(asked) == 4 and cpu_steps.TORCH == "sdpa"
