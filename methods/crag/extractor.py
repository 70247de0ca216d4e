"""LLM knowledge extractor (section 4.4): the model's own knowledge as one more reference, which may be wrong.

As published, the model is asked once, with greedy decoding, to reason and to look for a false premise. If it does not
know, nothing is added (the paper adds that too). A reply that is not in the form is added as it is, cut.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.harness.scoring.case import is_missing
from lm_eval_rag.methods.crag.crag_prompts import END, prompt, question_text
from lm_eval_rag.methods.crag.reasoning import read_reasoning

LONGEST = 1_000  # characters that become a reference


def own_knowledge(query: Query, notes: list[str], *, max_tokens: int, prompt_file: str | None) -> Plan[str]:
    """The model's answer without references, with its reasoning; "" if it does not know.

    Args:
        notes: Gets ``knowledge unparsed`` if the reply is not in the form.
    """
    shown = prompt("knowledge", question_text(query), prompt_file=prompt_file)
    reply = yield from generate(shown, temperature=0.0, max_tokens=max_tokens, stop=(END,))
    reasoned = read_reasoning(reply)
    if reasoned is None:
        notes.append("knowledge unparsed")
        return "" if is_missing(reply) else " ".join(reply.split())[:LONGEST]
    if is_missing(reasoned.answer):
        return ""
    return f"{reasoned.answer} (reasoning: {reasoned.reasoning})"[:LONGEST]
