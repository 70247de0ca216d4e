"""Prompts of methods of several steps: one TOML file a method, one table a step.

The file has a ``version``, and for each step a table of texts: ``instruction``; ``closed``, the instruction without
documents (default: the same); ``documents`` (default: ``Documents:`` and a line each); ``text``, the question with what
else is shown, as fields in braces; ``answer``, the cue after which the model writes. A user's file (``prompt_file=``)
may leave out what it does not change; its fields must be ours.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.prompts import Prompt, Template, changed_version, read_prompt_file
from lm_eval_rag.harness.core.types import Passage

PARTS = ("instruction", "closed", "documents", "text", "answer")
DOCUMENTS = "Documents:\n{documents}"


@dataclass(frozen=True, slots=True)
class Wording:
    """The prompt of one step.

    Args:
        template: Its parts around the text.
        text: With fields in braces.
    """

    template: Template
    text: str

    def prompt(
        self, passages: Iterable[Passage] = (), *, reasoning: str = "", order: str = "best_first", **texts: Any
    ) -> Prompt:
        """The prompt with its fields filled in; lists are numbered, blank fields say ``none``."""
        text = self.text.format(**_filled(**texts))
        return Prompt(self.template, text, tuple(passages), order=order, reasoning=reasoning)


@cache
def wordings(name: str, prompt_file: str | None = None) -> Mapping[str, Wording]:
    """A method's prompts by step.

    Raises:
        UserError: The user's file is missing, or holds what is no part of these prompts.
    """
    ours = read_prompt_file(str(files("lm_eval_rag.methods.prompts") / f"{name}.toml"))
    steps = dict(ours)
    if prompt_file is not None:
        theirs = read_prompt_file(prompt_file)
        for step, part in theirs.items():
            steps[step] = _changed(prompt_file, step, ours, part)
        if "version" not in theirs:
            steps["version"] = changed_version(ours, steps)
    version = str(steps.pop("version"))
    return {step: _wording(version, part) for step, part in steps.items()}


def _filled(**texts: Any) -> dict[str, str]:
    """Fields of a prompt: lists of texts are numbered, one a line; what is blank is ``none``."""
    return {name: _text(value) or "none" for name, value in texts.items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    return "\n".join(f"{number}. {text}" for number, text in enumerate(value, 1))


def _changed(path: str, step: str, ours: Mapping[str, Any], part: Any) -> Any:
    """Our part with the user's changes, or why these are refused."""
    if step not in ours:
        raise unknown(f"prompt in {path}:", step, ours)
    if step == "version":
        if not isinstance(part, str):
            raise UserError(f"The prompts in {path}: version = {part!r} is not allowed: give a text.")
        return part
    if not isinstance(part, dict) or set(part) - set(PARTS) or not all(isinstance(text, str) for text in part.values()):
        raise UserError(
            f"The prompts in {path}: [{step}] may have the texts {', '.join(PARTS)}; found "
            f"{', '.join(sorted(part)) if isinstance(part, dict) else repr(part)}."
        )
    for name, needed in (("text", _fields(path, step, ours[step]["text"])), ("documents", {"documents"})):
        if name in part and (given := _fields(path, step, part[name])) != needed:
            raise UserError(
                f"The prompts in {path}: [{step}] {name} needs the fields {', '.join(sorted(needed))} and no others; "
                f"found {', '.join(sorted(given)) or 'none'}."
            )
    return {**ours[step], **part}


def _fields(path: str, step: str, text: str) -> set[str]:
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise UserError(f"The prompts in {path}, [{step}]: {error}. Write a literal brace twice.") from None


def _wording(version: str, part: Mapping[str, str]) -> Wording:
    instruction = part["instruction"].strip()
    template = Template(
        version=version,
        instruction=instruction,
        instruction_rules=instruction,
        instruction_closed=part.get("closed", instruction).strip(),
        documents=part.get("documents", DOCUMENTS),
        rules="{rules}",
        query="{query}",
        answer=part.get("answer", "Answer:"),
    )
    return Wording(template, part["text"])
