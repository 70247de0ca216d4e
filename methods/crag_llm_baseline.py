"""CRAG's official LLM baseline: the question alone (facebookresearch/CRAG, arXiv:2406.04744).

Departures: the wording of the prompt is ours, and so is when the question was asked, which the kit leaves out; decoding
is greedy, where the kit samples at temperature 0.1.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.parameters import Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.answering import Manner, answered
from lm_eval_rag.methods.crag.references import References


def crag_llm_baseline(query: Query, *, answer_tokens: Positive = 75, prompt_file: str | None = None) -> Plan[Answer]:
    """Answer from the model's own memory.

    Args:
        answer_tokens: The most tokens of an answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """
    manner = Manner(
        reasoning=False, refined=False, false_premise=False, answer_tokens=answer_tokens, prompt_file=prompt_file
    )
    return (yield from answered(query, References(), [], manner))
