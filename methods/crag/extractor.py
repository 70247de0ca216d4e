"""LLM knowledge extractor (section 4.4): what the model itself knows, as one more reference, which may be wrong.

As published it is asked once, greedily, to reason and to look for a false premise. Where it does not know, nothing is
added (the paper adds that too); where its form is broken, the reply is added as it is, cut.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.harness.scoring.case import is_missing
from lm_eval_rag.methods.crag.reasoning import read_reasoning
from lm_eval_rag.methods.crag.wording import END, asked, prompt

LONGEST = 1_000  # characters of it that are shown


def own_knowledge(query: Query, notes: list[str], *, max_tokens: int, wording: str | None) -> Plan[str]:
    """The answer from memory with its reasoning; "" where the model does not know.

    Args:
        notes: Takes ``knowledge unread`` where the form is broken.
    """
    reply = yield from generate(
        prompt("knowledge", asked(query), wording=wording), temperature=0.0, max_tokens=max_tokens, stop=(END,)
    )
    read = read_reasoning(reply)
    if read is None:
        notes.append("knowledge unread")
        return "" if is_missing(reply) else " ".join(reply.split())[:LONGEST]
    if is_missing(read.answer):
        return ""
    return f"{read.answer} (reasoning: {read.reasoning})"[:LONGEST]
