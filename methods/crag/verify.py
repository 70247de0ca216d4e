"""Verification: the model checks the answer against the references; if they do not support it, the system abstains.

Not in the paper; competitors of KDD Cup 2024 exchanged answers for fewer hallucinations in this way. Without references
nothing can support an answer, and the model is not asked.
"""

from __future__ import annotations

from dataclasses import replace

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.crag_prompts import END, prompt, question_text
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import choice
from lm_eval_rag.methods.reasoning.steps import DONT_KNOW


def verified(query: Query, answer: Answer, references: References, *, prompt_file: str | None) -> Plan[Answer]:
    """The answer, or "I don't know" if the references do not support it.

    Its notes then get ``unsupported``, or ``verification unparsed`` if the model says neither yes nor no; in that case
    the answer stays.
    """
    if answer.abstained:
        return answer
    passages = replace(references, memory="").passages()
    verdict = None
    if passages:
        text = f"{question_text(query)}\nAnswer given: {answer.text}"
        shown = prompt("verify", text, passages, prompt_file=prompt_file)
        reply = yield from generate(shown, temperature=0.0, max_tokens=16, stop=("\n\n\n", END))
        verdict = choice(reply, ("yes", "no"))
        if verdict is None:
            return replace(answer, notes=(*answer.notes, "verification unparsed"))
    if verdict == "yes":
        return answer
    return replace(answer, text=DONT_KNOW, abstained=True, notes=(*answer.notes, "unsupported"))
