"""Finds out which step of which method a prompt belongs to, and reads its fields by the template that wrote it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from lm_eval_rag.harness.core.prompts import load_template
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning

METHODS = (
    "chain_of_knowledge",
    "crp_rag",
    "iter_retgen",
    "ircot",
    "search_agent",
    "self_rag",
    "think_then_act",
    "tree_of_thoughts",
    "verify_and_edit",
)
LISTS = ("known", "thoughts", "facts", "steps", "answers", "questions")  # fields of several lines
MANY, ONE = r".*?", r"[^\n]*"  # patterns of fields


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt that was read.

    Args:
        step: Name of the step, as ``ircot.thought``.
        question: What it asks about; None if the teacher does not know the question.
        fields: Texts of the prompt by name.
        docs: The documents; None without any.
        reasoning: What the model has written so far.
        sample: Number of the sample.
    """

    step: str
    question: Reasoning | None
    fields: dict[str, str]
    docs: str | None
    reasoning: str
    sample: int


@cache
def forms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(step, pattern) of every prompt of the methods; the patterns with the longest instruction first."""
    found: list[tuple[int, str, re.Pattern[str]]] = []

    def add(step: str, instructions: set[str], text: str, answer: str) -> None:
        for head in instructions:
            body = re.escape(text)
            for name in re.findall(r"\\\{(\w+)\\\}", body):
                body = body.replace(rf"\{{{name}\}}", f"(?P<{name}>{MANY if name in LISTS else ONE})", 1)
            pattern = rf"{re.escape(head)}\n(?:Documents:\n(?P<docs>.*?)\n)?{body}\n{re.escape(answer)}(?: (?P<r>.*))?"
            found.append((len(head), step, re.compile(pattern, re.DOTALL)))

    base = load_template(Path(str(files("lm_eval_rag.methods.prompts") / "short_answer.toml")))
    add("standard.answer", {base.instruction, base.instruction_closed}, "Question: {query}", base.answer)
    for method in METHODS:
        for step, wording in wordings(method).items():
            template = wording.template
            heads = {template.instruction, template.instruction_closed}
            add(f"{method}.{step}", heads, wording.text, template.answer)
    return tuple((step, pattern) for _, step, pattern in sorted(found, key=lambda form: -form[0]))
