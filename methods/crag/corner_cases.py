"""Corner cases (section 4.7): invalid questions, exact abstentions, and a summary of replies that cannot be parsed."""

from __future__ import annotations

from collections.abc import Callable

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.scoring.case import is_missing
from lm_eval_rag.methods.crag.crag_prompts import ANSWER_ENDS, prompt, question_text
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import one_line
from lm_eval_rag.methods.reasoning.steps import DONT_KNOW

INVALID = "invalid question"
SUMMARISED = 4_000  # characters of an unparsed reply that the summariser sees: its end, where an answer would be


def summarise(query: Query, reply: str, *, max_tokens: int, prompt_file: str | None) -> Plan[str]:
    """The backup summariser's reply to an unparsed reply (appendix D.6); "" if that is blank."""
    if not reply.strip():
        return ""
    text = f"Notes:\n{reply[-SUMMARISED:].strip()}\n\n{question_text(query)}"
    shown = prompt("summary", text, prompt_file=prompt_file)
    return (yield from generate(shown, temperature=0.0, max_tokens=max_tokens, stop=ANSWER_ENDS))


def settle(
    text: str,
    references: References,
    notes: list[str],
    *,
    invalid: bool | None = None,
    read: Callable[[str], str] = one_line,
) -> Answer:
    """The final answer. A text that contains "I don't know" becomes exactly that, then likewise "invalid question".

    Args:
        text: The whole reply or field; both are looked for in all of it.
        notes: Gets ``blank answer`` if there is no answer.
        invalid: The value of the false-premise field, if there is one.
        read: Takes the answer from the text.
    """
    words, answer = one_line(text), read(text)
    if not answer:
        notes.append("blank answer")
    if not answer or is_missing(words):
        return Answer(DONT_KNOW, references.chunks, abstained=True, notes=tuple(notes))
    return Answer(INVALID if invalid or INVALID in words.lower() else answer, references.chunks, notes=tuple(notes))
