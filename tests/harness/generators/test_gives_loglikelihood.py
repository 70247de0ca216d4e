"""Which log-probabilities a generator gives, which methods ask before they need them; nothing is built for it."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.core.asks import has_loglikelihood, log_probabilities
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.engine import run

URL = {"base_url": "http://127.0.0.1:9/v1/completions", "model": "m"}


def method(query: Query) -> Plan[Answer]:
    """Answers which log-probabilities there are, and whether of any text."""
    logs = yield from log_probabilities()
    return Answer(f"{logs or 'none'} {(yield from has_loglikelihood())}")


@pytest.mark.parametrize(
    ("name", "arguments", "gives"),
    [
        ("hf", {"pretrained": "nowhere"}, "texts True"),
        ("local-completions", URL, "texts True"),
        ("hf", {"pretrained": "nowhere", "thinking_tokens": 9}, "none False"),
        ("local-chat-completions", {**URL, "thinking_tokens": 9, "logprobs": True}, "replies False"),
        ("local-completions", {**URL, "tokenizer_backend": "None"}, "none False"),
        ("local-chat-completions", URL, "none False"),
        ("local-chat-completions", {**URL, "logprobs": True}, "replies False"),
        ("local-chat-completions", {**URL, "logprobs": False}, "none False"),
        ("openai-chat-completions", {"model": "m"}, "none False"),
    ],
)
def test_by_kind(name: str, arguments: dict[str, str], gives: str) -> None:
    ((answer, trace),) = run(method, ["?"], generator=LMGenerator(ModelSpec(name, arguments)))
    assert answer.text == gives and trace.count("HasLoglikelihood") == 2
