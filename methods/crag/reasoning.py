"""Reasoning module (section 4.6, appendix D.5): think first, in a form whose fields can be read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Passage, Plan, Query
from lm_eval_rag.methods.crag.wording import END, asked, prompt

ANSWER = re.compile(r"^[#*\s]*answer\b[*\s]*:?[*\s]*", re.IGNORECASE | re.MULTILINE)
PREMISE = re.compile(r"^[#*\s]*false premise\b[*\s]*:?[*\s]*(yes|no)?\b", re.IGNORECASE | re.MULTILINE)
REASONING = re.compile(r"^[#*\s]*reasoning\b[*\s]*:?", re.IGNORECASE | re.MULTILINE)
PLACEHOLDERS = {"", "...", "…"}


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A reply in the form.

    Args:
        answer: On one line, not blank.
        reasoning: What stands before the answer, on one line.
        false_premise: What the field says; None where it is missing or says something else.
    """

    answer: str
    reasoning: str = ""
    false_premise: bool | None = None


def read_reasoning(reply: str) -> Reasoned | None:
    """The fields of a reply; None where it has no answer. Where a field comes several times the last one counts."""
    text = reply.partition(END)[0]
    begins = list(ANSWER.finditer(text))
    if not begins:
        return None
    before, rest = text[: begins[-1].start()], text[begins[-1].end() :]
    premise = list(PREMISE.finditer(rest))
    answer = _line(rest[: premise[0].start()] if premise else rest)
    if answer in PLACEHOLDERS:
        return None
    said = premise[-1].group(1) if premise else None
    thoughts = REASONING.split(before)[-1]
    return Reasoned(answer, _line(thoughts), None if said is None else said.lower() == "yes")


def reason(
    query: Query, passages: tuple[Passage, ...], *, false_premise: bool, max_tokens: int, prompt_file: str | None
) -> Plan[str]:
    """The model's reply in the form, as it is; with ``false_premise`` it is told to look for one."""
    name = "reasoning_false_premise" if false_premise else "reasoning"
    shown = prompt(name, asked(query), passages, prompt_file=prompt_file)
    return (yield from generate(shown, temperature=0.0, max_tokens=max_tokens, stop=(END,)))


def _line(text: str) -> str:
    """On one line, without the rules and hashes that part fields."""
    return re.sub(r"(?:\s|^)(?:-{3,}|#{1,6})(?=\s|$)", " ", " ".join(text.split())).strip(" *")
