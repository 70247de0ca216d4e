"""What the tests of generators share: models computed with directly, one token at a time, and a double of vLLM."""

import importlib
import sys
from pathlib import Path

import pytest

DOUBLES = Path(__file__).parent / "doubles"


class Direct:
    """A checkpoint without lm_eval: one forward pass of torch a token, one prompt at a time.

    Args:
        wrap: The text that the model is to read for a prompt.
    """

    def __init__(self, folder, wrap=lambda prompt: prompt):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.wrap, self.written = wrap, {}

    def ids(self, text):
        return self.tokenizer(text).input_ids

    def greedy(self, prompt, n):
        """(text, token ids) of at most n greedy tokens, without the end token; n is 60 at most."""
        import torch

        if prompt not in self.written:
            before = self.ids(self.wrap(prompt))
            ids = list(before)
            with torch.no_grad():
                while len(ids) < len(before) + 60:
                    token = int(self.model(torch.tensor([ids])).logits[0, -1].argmax())
                    if token == self.tokenizer.eos_token_id:
                        break
                    ids.append(token)
            self.written[prompt] = ids[len(before) :]
        ids = self.written[prompt][:n]
        return self.tokenizer.decode(ids, skip_special_tokens=True), ids

    def log_probability(self, prompt, continuation):
        """ln P(continuation | prompt), from the logits in double precision."""
        import torch

        before, ids = self.ids(self.wrap(prompt)), self.ids(self.wrap(prompt) + continuation)
        with torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0].double()
        chosen = [logits[i - 1][ids[i]] - torch.logsumexp(logits[i - 1], 0) for i in range(len(before), len(ids))]
        return float(sum(chosen))


@pytest.fixture(scope="session")
def direct(little_llama):
    """little_llama, directly."""
    return Direct(little_llama)


@pytest.fixture(scope="session")
def direct_chat(little_llama):
    """The same through its chat template."""
    return Direct(little_llama, lambda prompt: f"<|user|>{prompt}<|assistant|>")


@pytest.fixture(scope="session")
def direct_tiny():
    """The embedded generator, directly."""
    pytest.importorskip("transformers")
    from lm_eval_rag.harness.generators.spec import EMBEDDED

    return Direct(EMBEDDED["tiny"])


@pytest.fixture(scope="session")
def lora(little_llama, tmp_path_factory):
    """A LoRA adapter of rank 9 that changes what little_llama says."""
    peft, torch = pytest.importorskip("peft"), pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("lora")
    base = AutoModelForCausalLM.from_pretrained(little_llama, dtype="float32")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = peft.LoraConfig(
            r=2, rank_pattern={"v_proj": 9}, target_modules=["q_proj", "v_proj"], init_lora_weights=False
        )
        peft.get_peft_model(base, config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def fake_vllm():
    """The double of vLLM on the path, for one file of tests."""
    pytest.importorskip("transformers")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOUBLES)
        yield importlib.import_module("vllm")
    for name in list(sys.modules):  # lm_eval's class holds on to the double that it was imported over
        if name.split(".")[0] == "vllm" or name.startswith("lm_eval.models.vllm"):
            del sys.modules[name]


@pytest.fixture
def vllm(fake_vllm):
    """The same, with no engine made yet."""
    fake_vllm.made.clear()
    return fake_vllm
