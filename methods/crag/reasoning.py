"""Reasoning module (section 4.6, appendix D.5): the model reasons first, in a form whose fields can be parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Passage, Plan, Query
from lm_eval_rag.methods.crag.crag_prompts import END, prompt, question_text
from lm_eval_rag.methods.crag.replies import unruled

ANSWER = re.compile(r"^[#*\s]*answer\b[*\s]*:?[*\s]*", re.IGNORECASE | re.MULTILINE)
PREMISE = re.compile(r"^[#*\s]*false premise\b[*\s]*:?[*\s]*(yes|no)?\b", re.IGNORECASE | re.MULTILINE)
REASONING = re.compile(r"^[#*\s]*reasoning\b[*\s]*:?", re.IGNORECASE | re.MULTILINE)
PLACEHOLDERS = {"", "...", "…"}


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A reply in the form.

    Args:
        answer: On one line, not blank.
        reasoning: The text before the answer, on one line.
        false_premise: Whether the field says yes or no; None if it is missing or says something else.
    """

    answer: str
    reasoning: str = ""
    false_premise: bool | None = None


def read_reasoning(reply: str) -> Reasoned | None:
    """The fields of a reply; None if it has no answer. If a field occurs several times, the last one counts."""
    text = reply.partition(END)[0]
    headings = list(ANSWER.finditer(text))
    if not headings:
        return None
    before, after = text[: headings[-1].start()], text[headings[-1].end() :]
    premises = list(PREMISE.finditer(after))
    answer = unruled(after[: premises[0].start()] if premises else after)
    if answer in PLACEHOLDERS:
        return None
    premise = premises[-1].group(1) if premises else None
    reasoning = REASONING.split(before)[-1]
    return Reasoned(answer, unruled(reasoning), None if premise is None else premise.lower() == "yes")


def reason(
    query: Query, passages: tuple[Passage, ...], *, false_premise: bool, max_tokens: int, prompt_file: str | None
) -> Plan[str]:
    """The model's reply, not parsed; ``false_premise`` asks it to look for a false premise."""
    name = "reasoning_false_premise" if false_premise else "reasoning"
    shown = prompt(name, question_text(query), passages, prompt_file=prompt_file)
    return (yield from generate(shown, temperature=0.0, max_tokens=max_tokens, stop=(END,)))
