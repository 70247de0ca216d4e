"""The wording of the methods' prompts, loading it, and the style of answer that it asks for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from lm_eval_rag.harness.core.prompts import Template, load_template

AnswerStyle = Literal["free", "short"]  # as the model likes, or the bare answer: exact match is no score for sentences
SHORT = "Reply with the bare answer on one line: no sentence around it, no explanation."
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
    asking = {part: f"{getattr(loaded, part)} {SHORT}" for part in INSTRUCTIONS}
    return replace(loaded, version=f"{loaded.version}+{style}", **asking)


def answer_of(reply: str, style: AnswerStyle) -> str:
    """The answer in a reply: all of it, or in the style ``short`` its first line."""
    text = reply.strip()
    return text.partition("\n")[0].strip() if style == "short" else text
