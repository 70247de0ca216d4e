"""ITER-RETGEN: what was generated guides the next retrieval, in a fixed number of rounds (arXiv:2305.15294, section 3).

Each round retrieves with the question and the whole output of the round before (the first round with the question
alone), and generates anew from the question and the passages of this round. The output of the last round is the answer.

Defaults: 3 rounds and 5 passages, decoding is greedy. The paper runs up to 7 rounds.

``variant=flashrag`` is the FlashRAG toolkit's: it asks for the bare answer in place of a chain of thought, so that the
next query is the question with a bare answer.

Departures: the wording of the prompts is ours, without worked examples (the paper has a few per data set). An output
that states no answer gives its last line (note ``answer unparsed``).
"""

from __future__ import annotations

from typing import Literal

from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Depth, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.rationales import answer_or_first_line, answer_or_line, rationale_of, states_answer
from lm_eval_rag.methods.reasoning.steps import STOP, final, limited, merged


@limited
def iter_retgen(
    query: Query,
    *,
    k: Depth = 5,
    iterations: Positive = 3,
    variant: Literal["paper", "flashrag"] = "paper",
    thought_tokens: Positive = 256,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer from what the last round retrieved.

    Args:
        k: Passages of each round.
        iterations: Rounds of retrieval and generation.
        variant: ``paper`` generates a chain of thought, ``flashrag`` the bare answer.
        thought_tokens: Limit of tokens of a generation.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording = wordings("iter_retgen", prompt_file)[variant]
    lists: list[tuple[Passage, ...]] = []
    output = ""
    for _ in range(iterations):
        passages = yield from retrieve(f"{query.text} {output}".strip(), k)
        lists.insert(0, passages)
        prompt = wording.prompt(passages, question=query.text)
        output = (yield from generate(prompt, temperature=0.0, max_tokens=thought_tokens, stop=STOP)).strip()
    notes = [] if variant == "flashrag" or states_answer(output) else ["answer unparsed"]
    rationale = rationale_of(output) if variant == "paper" else None
    answer = answer_or_line(output) if variant == "paper" else answer_or_first_line(output)
    return final(answer, merged(lists), notes, rationale)
