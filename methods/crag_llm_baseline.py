"""CRAG's official LLM baseline: the question alone (facebookresearch/CRAG, arXiv:2406.04744).

As in the official kit (models/vanilla_llama_baseline.py), the prompt says when the question was asked, and an answer
has at most 50 tokens. The benchmark's rules allow 75 by the tokenizer of Llama 2; the kit takes 50 because Llama 3
needs fewer for the same text. The answer is the whole reply. Departures: the wording of the prompt is ours, and it
names the weekday with the time, where the kit has "Current Time" alone; line breaks of an answer become spaces; a reply
ends before a next question that the model makes up; decoding is greedy, where the kit samples at temperature 0.1 and
top_p 0.9.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.parameters import Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.answering import ANSWER_TOKENS, answer_from, baseline_settings
from lm_eval_rag.methods.crag.references import References


def crag_llm_baseline(
    query: Query, *, answer_tokens: Positive = ANSWER_TOKENS, prompt_file: str | None = None
) -> Plan[Answer]:
    """Answer from the model's own knowledge.

    Args:
        answer_tokens: Limit of tokens of an answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """
    settings = baseline_settings(answer_tokens, prompt_file)
    return (yield from answer_from(query, References(), [], settings))
