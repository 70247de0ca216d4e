"""Standard prompting: the question alone, without retrieval (arXiv:2410.22353, section 4.2 and Table 2).

Departures: the wording of the prompt is ours; it asks for the form of answer that the task has. ``answer_style=cot`` is
a control: it reasons before it answers (arXiv:2201.11903, without worked examples).
"""

from __future__ import annotations

from typing import Literal

from lm_eval_rag.harness.core.asks import examples, generate
from lm_eval_rag.harness.core.parameters import Natural, Positive
from lm_eval_rag.harness.core.prompts import Prompt, Shot
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.prompts import AnswerStyle, answer_of, template, template_for
from lm_eval_rag.methods.reasoning.chain_of_thought import REASONED, check_reasoning, reasoned
from lm_eval_rag.methods.reasoning.steps import STOP


def standard_prompting(
    query: Query,
    *,
    shots: Natural = 0,
    seed: Natural = 0,
    prompt_file: str | None = None,
    answer_style: AnswerStyle | Literal["cot"] = "free",
    reasoning_tokens: Positive = 256,
) -> Plan[Answer]:
    """Answer from the model's own memory.

    Args:
        shots: Fixed worked examples of F_G in front of the question.
        seed: Of the choice of examples.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        answer_style: ``short`` asks for the bare answer and reads it without what explains it; ``cot`` asks for a chain
            of thought that ends in "So the answer is", without ``shots``.
        reasoning_tokens: Limit of tokens of a reply that reasons, in place of the task's.
    """
    # Before anything is asked: a bad file ends the run at once.
    if answer_style == "cot":
        check_reasoning(shots)
        prompt = Prompt(template(prompt_file, REASONED), query.text)
        return reasoned((yield from generate(prompt, max_tokens=reasoning_tokens, stop=STOP)))
    parts = template_for(query, prompt_file, answer_style)
    worked = yield from examples(shots, seed)
    prompt = Prompt(parts, query.text, shots=tuple(Shot(q.text, answer) for q, answer in worked))
    text = yield from generate(prompt)
    return Answer(answer_of(text, answer_style))
