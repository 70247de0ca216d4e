"""Verification: a last look at the references, which turns an answer that they do not bear out into "I don't know".

Not in the paper; competitors of KDD Cup 2024 traded answers for fewer hallucinations in this way. Where there are no
references nothing can bear an answer out, and the model is not asked.
"""

from __future__ import annotations

from dataclasses import replace

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.corner_cases import DONT_KNOW
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import choice
from lm_eval_rag.methods.crag.wording import END, asked, prompt


def verified(query: Query, answer: Answer, found: References, *, prompt_file: str | None) -> Plan[Answer]:
    """The answer, or "I don't know" where the references do not bear it out.

    Its notes take ``unsupported``, or ``verification unread`` where the model says neither yes nor no; then the answer
    stays.
    """
    if answer.abstained:
        return answer
    passages = replace(found, memory="").passages()
    said = None
    if passages:
        shown = prompt("verify", f"{asked(query)}\nAnswer given: {answer.text}", passages, prompt_file=prompt_file)
        said = choice((yield from generate(shown, temperature=0.0, max_tokens=8, stop=("\n\n", END))), ("yes", "no"))
        if said is None:
            return replace(answer, notes=(*answer.notes, "verification unread"))
    if said == "yes":
        return answer
    return replace(answer, text=DONT_KNOW, abstained=True, notes=(*answer.notes, "unsupported"))
