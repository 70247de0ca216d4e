"""Corner cases (section 4.7): invalid questions, "I don't know" made exact, and a summary where parsing fails."""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.scoring.case import is_missing
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import one_line
from lm_eval_rag.methods.crag.wording import END, asked, prompt

DONT_KNOW = "I don't know"
INVALID = "invalid question"
NOTES_READ = 4_000  # characters of broken notes that the summariser is shown: their end, where an answer would be


def summarise(query: Query, reply: str, *, max_tokens: int, wording: str | None) -> Plan[str]:
    """The backup summariser: the answer that unreadable reasoning comes to (appendix D.6); "" for a blank reply."""
    if not reply.strip():
        return ""
    shown = prompt("summary", f"Notes:\n{reply[-NOTES_READ:].strip()}\n\n{asked(query)}", wording=wording)
    return one_line((yield from generate(shown, temperature=0.0, max_tokens=max_tokens, stop=("\n\n\n", END))))


def settle(text: str, found: References, notes: list[str], *, invalid: bool | None = None) -> Answer:
    """The final answer: "I don't know" alone wherever it stands in the text, then "invalid question" alone.

    Args:
        notes: Takes ``blank answer`` where there is no text.
        invalid: What the false-premise field says, if there is one.
    """
    if not text.strip():
        notes.append("blank answer")
    if is_missing(text):
        return Answer(DONT_KNOW, found.chunks, abstained=True, notes=tuple(notes))
    answer = INVALID if invalid or INVALID in text.lower() else text.strip()
    return Answer(answer, found.chunks, notes=tuple(notes))
