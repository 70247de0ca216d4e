"""Whether a generator gives log-probabilities, which methods ask before they need them; nothing is built for it."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.core.asks import has_loglikelihood
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.engine import run

URL = {"base_url": "http://127.0.0.1:9/v1/completions", "model": "m"}


def method(query: Query) -> Plan[Answer]:
    """Answers whether there are log-probabilities."""
    return Answer(str((yield from has_loglikelihood())))


@pytest.mark.parametrize(
    ("name", "arguments", "gives"),
    [
        ("hf", {"pretrained": "nowhere"}, True),
        ("local-completions", URL, True),
        ("local-completions", {**URL, "tokenizer_backend": "None"}, False),
        ("local-chat-completions", URL, False),
        ("openai-chat-completions", {"model": "m"}, False),
    ],
)
def test_by_kind(name: str, arguments: dict[str, str], gives: bool) -> None:
    ((answer, trace),) = run(method, ["?"], generator=LMGenerator(ModelSpec(name, arguments)))
    assert answer.text == str(gives) and trace.count("HasLoglikelihood") == 1
