"""Prompts of methods of several steps: one TOML file a method, one table a step.

The file has a ``version``, and for each step a table of texts: ``instruction``; ``closed``, the instruction without
documents (default: the same); ``documents`` (default: ``Documents:`` and a line each); ``text``, the question with what
else is shown, as fields in braces; ``answer``, the cue after which the model writes; ``item``, a line of a list that is
shown (default: ``{number}. {text}``; with ``{title}`` the first line of a text is its title, and ``{text}`` the rest).
A user's file (``prompt_file=``) may leave out what it does not change; its fields must be ours.
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

PARTS = ("instruction", "closed", "documents", "text", "answer", "item")
DOCUMENTS = "Documents:\n{documents}"
ITEM, ITEM_FIELDS = "{number}. {text}", {"number", "title", "text"}


@dataclass(frozen=True, slots=True)
class Wording:
    """The prompt of one step.

    Args:
        template: Its parts around the text.
        text: With fields in braces.
        item: A line of a list.
    """

    template: Template
    text: str
    item: str = ITEM

    def prompt(
        self,
        passages: Iterable[Passage] = (),
        *,
        reasoning: str = "",
        begun: str = "",
        order: str = "best_first",
        **texts: Any,
    ) -> Prompt:
        """The prompt with its fields filled in; lists have a line for each item, blank fields say ``none``."""
        text = self.text.format(**{name: self._text(value) or "none" for name, value in texts.items()})
        return Prompt(self.template, text, tuple(passages), order=order, reasoning=reasoning, begun=begun)

    def _text(self, value: Any) -> str:
        if isinstance(value, str):
            return value.strip()
        titled, lines = "{title}" in self.item, list[str]()
        for number, text in enumerate(value, 1):
            title, _, body = str(text).partition("\n") if titled else ("", "", text)
            lines.append(self.item.format(number=number, title=title, text=body))
        return "\n".join(lines)


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
    if "item" in part and not {"text"} <= (given := _fields(path, step, part["item"])) <= ITEM_FIELDS:
        raise UserError(
            f"The prompts in {path}: [{step}] item needs the field text, and may have number and title; found "
            f"{', '.join(sorted(given)) or 'none'}."
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
    return Wording(template, part["text"], part.get("item", ITEM))
