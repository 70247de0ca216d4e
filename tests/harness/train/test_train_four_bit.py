"""An adapter tuned on a base model in 4 bits (``--four-bit``), and evaluated on it (``gen_load_in_4bit``)."""

from dataclasses import replace

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.quantization import split
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.train.generator import train_generator
from lm_eval_rag.harness.train.generator_model import Loaded
from lm_eval_rag.harness.train.generator_settings import Settings
from lm_eval_rag.harness.train.presets import PRESETS
from lm_eval_rag.methods.rulerag_ft import rulerag_ft
from lm_eval_rag.tasks.ruleqa_demo.build import build as build_demo

needs_bitsandbytes = "needs bitsandbytes (extra train)"


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """(adapter's folder, (prompt, gold answer) of the dev split, answers in training, their log-probabilities)."""
    pytest.importorskip("bitsandbytes", reason=needs_bitsandbytes)
    pytest.importorskip("trl")
    looks = []
    answer = Loaded.answer

    def watched(self, rows, decoding):
        texts, pairs = answer(self, rows, decoding), [(row.prompt, f" {row.answer}") for row in rows]
        self.model.eval()
        looks.append((pairs, texts, self.generator.loglikelihood(pairs)))
        self.model.train()
        return texts

    preset = replace(PRESETS["tiny"], lora=True, four_bit=True, epochs=1, batch_size=4, warmup=1)
    settings = Settings("tiny", "rgft", preset, rows=16, dev=6, dtype="float32", device="cpu")
    setup = read_arguments("rulerag_ft", rulerag_ft, {"retriever": "bm25", "generator": "tiny", "documents": 2})
    out = tmp_path_factory.mktemp("four") / "adapter"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loaded, "answer", watched)
        patch.setattr("lm_eval_rag.harness.train.curves.find_spec", lambda name: None)  # no picture of the curves
        train_generator(settings, setup, {"ruleqa_demo": build_demo()}, out)
    before, after = looks
    assert min(abs(a - b) for a, b in zip(before[2], after[2], strict=True)) > 1e-3  # it learnt something
    return out, *after


def in_four_bits(**arguments):
    return LMGenerator(ModelSpec("tiny", {"load_in_4bit": True, **arguments}))


def test_an_evaluation_in_four_bits_says_what_training_said(tuned):
    adapter, pairs, answers, likely = tuned
    generator = in_four_bits(peft=str(adapter))
    texts = generator.generate([prompt for prompt, _ in pairs], Decoding(), [0] * len(pairs))
    assert [text.strip() for text in texts] == answers
    assert generator.loglikelihood(pairs) == pytest.approx(likely, abs=5e-3)
    kinds = {type(module).__name__ for module in generator.lm.model.modules()}
    assert "Linear4bit" in kinds and generator.prompt_version == "ruleqa-1"


def test_a_method_runs_on_it(tuned):
    ((answer, trace),) = run(rulerag_ft, ["who ?"], corpus=["a"], generator=in_four_bits(peft=str(tuned[0])), rules=())
    assert trace.failure is None and isinstance(answer.text, str)


def test_the_bits_reach_transformers():
    pytest.importorskip("bitsandbytes", reason=needs_bitsandbytes)
    about = in_four_bits(bnb_4bit_quant_type="fp4", dtype="bfloat16").lm.model.config.quantization_config
    assert (about.load_in_4bit, about.bnb_4bit_quant_type, str(about.bnb_4bit_compute_dtype)) == (
        True, "fp4", "torch.bfloat16",
    )  # fmt: skip
    usual = in_four_bits().lm.model.config.quantization_config
    assert usual.bnb_4bit_quant_type == "nf4" and str(usual.bnb_4bit_compute_dtype) == "torch.float32"
    eight = LMGenerator(ModelSpec("tiny", {"load_in_8bit": True, "llm_int8_threshold": 5.0})).lm
    assert eight.model.config.quantization_config.llm_int8_threshold == 5.0
    assert "Linear8bitLt" in {type(module).__name__ for module in eight.model.modules()}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"load_in_4bit": True, "load_in_8bit": True}, r"are both given. Give one of them"),
        ({"bnb_4bit_quant_type": "nf4"}, r"gen_bnb_4bit_quant_type needs gen_load_in_4bit=True"),
        ({"load_in_4bit": False, "llm_int8_threshold": 6.0}, r"gen_llm_int8_threshold needs gen_load_in_4bit=True"),
        ({"load_in_4bit": True, "bnb_4bit_quant": "nf4"}, r"Did you mean 'gen_bnb_4bit_quant_type'"),
    ],
    ids=str,
)
def test_bits_that_make_no_sense_are_refused(given, said, monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.generators.quantization.need", lambda *names: None)
    with pytest.raises(UserError, match=said):
        LMGenerator(ModelSpec("tiny", given)).generate(["p"], Decoding(), [0])


def test_no_bits_are_no_argument():
    assert split({"load_in_4bit": False, "dtype": "float32"}) == ({"dtype": "float32"}, {})


def test_without_bitsandbytes_it_is_one_message(monkeypatch):
    from lm_eval_rag.harness.common import extras

    find = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "bitsandbytes" else find(name))
    with pytest.raises(UserError, match=r"gen_load_in_4bit=True needs bitsandbytes.*pip install"):
        in_four_bits().generate(["p"], Decoding(), [0])
