"""The wording of the methods' prompts, loading it, and the style of answer that it asks for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.core.prompts import Template, load_template
from lm_eval_rag.harness.core.types import ENTITY, SHORT, Query
from lm_eval_rag.methods.reasoning.rationales import answer_at_line, answer_or_first_line, plain

AnswerStyle = Literal["free", "short"]  # as the model likes, or the bare answer: exact match is no score for sentences
BARE = "Reply with the bare answer on one line: no sentence around it, no explanation."
PROMPTS = {ENTITY: "ruleqa", SHORT: "short_answer"}  # form of a task's answers -> file of prompts
INSTRUCTIONS = ("instruction", "instruction_rules", "instruction_closed")


@cache
def template(prompt_file: str | None = None, name: str = "ruleqa", style: AnswerStyle = "free") -> Template:
    """Our prompts of that name, with what the user's prompt file changes in them.

    Args:
        style: ``short`` adds a sentence to each instruction, and its name to the version of the prompt.

    Raises:
        UserError: The file is missing, or holds what is no part of a prompt.
    """
    ours = load_template(Path(str(files("lm_eval_rag.methods.prompts") / f"{name}.toml")))
    loaded = load_template(prompt_file, ours) if prompt_file else ours
    if style == "free":
        return loaded
    asking = {part: f"{getattr(loaded, part)} {BARE}" for part in INSTRUCTIONS}
    return replace(loaded, version=f"{loaded.version}+{style}", **asking)


def template_for(query: Query, prompt_file: str | None = None, style: AnswerStyle = "free") -> Template:
    """The prompts that ask for the form of answer that the question's task has.

    Raises:
        UserError: As :func:`template`, or a form that is not known.
    """
    if query.answer_form not in PROMPTS:
        raise unknown("form of answer", query.answer_form, PROMPTS)
    return template(prompt_file, PROMPTS[query.answer_form], style)


def answer_of(reply: str, style: AnswerStyle) -> str:
    """The answer in a reply: what its last line states from its beginning ("Answer: ..."), else all of it.

    In the style ``short`` it is read as methods of several steps read theirs, so that they can be compared.
    """
    if style == "short":
        return answer_or_first_line(reply)
    text, stated = reply.strip(), answer_at_line(reply)
    return stated if stated and stated in plain(text).rpartition("\n")[2] else text
