"""Reasoning module (section 4.6, appendix D.5): the model reasons first, in a form whose fields can be parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Passage, Plan, Query
from lm_eval_rag.methods.crag.crag_prompts import END, prompt, question_text
from lm_eval_rag.methods.crag.replies import unruled

MARKS = r"(?:[^\w\n]|_)*+(?:\d{1,2}[.)])?(?:[^\w\n]|_)*+"  # of Markdown, lists and quotations, before a field
ANSWER = re.compile(
    rf"^{MARKS}(?:final\s+)?answer(?:[^\w\n:：]|_)*+(?:[:：][*_`\s]*|$)",
    re.IGNORECASE | re.MULTILINE,
)
PREMISE = re.compile(  # then "(yes or no)", the value right away or after a colon; "yes or no" is no value
    rf"^{MARKS}(?:has[\W_]+)?false[\W_]+premise\b(?:\s*\([^()\n]*\))?+"
    r"(?:(?:[^\n:：?]*[:：?])??[\W_]*+(yes(?!\s*(?:or|/))|no)\b)?",
    re.IGNORECASE | re.MULTILINE,
)
REASONING = re.compile(r"^[#*\s]*reasoning\b[*\s]*:?", re.IGNORECASE | re.MULTILINE)
PLACEHOLDERS = {"", "...", "…"}


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A reply in the form.

    Args:
        answer: On one line, not blank.
        reasoning: The text before the answer, on one line.
    """

    answer: str
    reasoning: str = ""


def read_reasoning(reply: str) -> Reasoned | None:
    """Answer and reasoning of a reply; None if it has no answer. If the field occurs several times, the last counts."""
    text = reply.partition(END)[0]
    headings = list(ANSWER.finditer(text))
    if not headings:
        return None
    before, after = text[: headings[-1].start()], text[headings[-1].end() :]
    answer = unruled(PREMISE.split(after, maxsplit=1)[0])
    if answer in PLACEHOLDERS:
        return None
    return Reasoned(answer, unruled(REASONING.split(before)[-1]))


def read_premise(reply: str) -> bool | None:
    """Whether the last false-premise field that says yes or no says yes; None without one."""
    values = [value for value in PREMISE.findall(reply.partition(END)[0]) if value]
    return values[-1].lower() == "yes" if values else None


def reason(
    query: Query, passages: tuple[Passage, ...], *, false_premise: bool, max_tokens: int, prompt_file: str | None
) -> Plan[str]:
    """The model's reply, not parsed; ``false_premise`` asks it to look for a false premise."""
    name = "reasoning_false_premise" if false_premise else "reasoning"
    shown = prompt(name, question_text(query), passages, prompt_file=prompt_file)
    return (yield from generate(shown, temperature=0.0, max_tokens=max_tokens, stop=(END,)))
