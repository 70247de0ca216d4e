"""What the tests of generators share."""

import pytest


@pytest.fixture(scope="session")
def reference(little_llama):
    """The same model and tokenizer, without lm_eval."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(little_llama, dtype="float32").eval()
    return model, AutoTokenizer.from_pretrained(little_llama)
