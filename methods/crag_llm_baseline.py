"""CRAG's official LLM baseline: the question alone (facebookresearch/CRAG, arXiv:2406.04744).

Departures: the wording of the prompt is ours, and it says when the question was asked, which the official kit leaves
out; decoding is greedy, where the kit samples at temperature 0.1.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.parameters import Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.answering import answer_from, baseline_settings
from lm_eval_rag.methods.crag.references import References


def crag_llm_baseline(query: Query, *, answer_tokens: Positive = 75, prompt_file: str | None = None) -> Plan[Answer]:
    """Answer from the model's own knowledge.

    Args:
        answer_tokens: Limit of tokens of an answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """
    settings = baseline_settings(answer_tokens, prompt_file)
    return (yield from answer_from(query, References(), [], settings))
