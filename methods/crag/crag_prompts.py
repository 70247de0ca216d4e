"""The prompts of all modules, from our TOML file; the user's file (``prompt_file=``) may change some of them."""

from __future__ import annotations

import json
from collections.abc import Container
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.prompts import Prompt, Shot, Template, changed_version, read_prompt_file
from lm_eval_rag.harness.core.types import Passage, Query

PARTS = {"instruction", "closed", "answer", "reminder"}
END = "===END==="  # ends the reasoning form; every module stops there, so that no model goes on forever
ANSWER_ENDS = ("\n\n\n", "\nAsked on:", "\nQuestion:", END)  # models without a chat template go on with a next question


def prompt(
    name: str, text: str, references: tuple[Passage, ...] = (), shots: tuple[Shot, ...] = (), *, prompt_file: str | None
) -> Prompt:
    """The prompt of a module; references are in order of importance, and the last ones are dropped to fit.

    Instruction and examples are the system message, and the user message repeats the rules, as in the paper (appendix
    D); the official baselines' prompt is one message.
    """
    reminder = _parts(prompt_file)[name].get("reminder", "").strip()
    template = _templates(prompt_file)[name]
    return Prompt(template, text, references, shots=shots, reminder=reminder, apart=name != "baseline")


def question_text(query: Query) -> str:
    """The question, and when it was asked: the time and its weekday, since questions say "last Friday"."""
    if not query.time:
        return f"Question: {query.text}"
    try:
        day = f" ({datetime.fromisoformat(query.time):%A})"
    except ValueError:  # a time of the user's in another format stays as it is
        day = ""
    return f"Asked on: {query.time}{day}\nQuestion: {query.text}"


def own_examples(attribute: str, prompt_file: str | None) -> dict[str, list[str]]:
    """Our own examples of an attribute, or those of the user's prompt file: label -> questions."""
    labels: dict[str, list[str]] = _parts(prompt_file)["demonstrations"][attribute]
    return labels


def call_examples(functions: Container[str], prompt_file: str | None) -> tuple[Shot, ...]:
    """The worked examples of function calls whose functions are all among ``functions``."""
    examples: list[dict[str, str]] = _parts(prompt_file)["examples"]["calls"]
    return tuple(
        Shot(f"Asked on: {example['asked']}\nQuestion: {example['question']}", example["reply"])
        for example in examples
        if all(call["function_name"] in functions for call in json.loads(example["reply"]))
    )


@cache
def _templates(prompt_file: str | None) -> dict[str, Template]:
    parts = _parts(prompt_file)
    version = str(parts["version"])
    return {name: _template(version, part) for name, part in parts.items() if name not in CHECKS}


def _template(version: str, part: dict[str, str]) -> Template:
    instruction = part["instruction"].strip() + "\n"  # an empty line separates it from what follows
    return Template(
        version=version,
        instruction=instruction,
        instruction_rules=instruction,
        instruction_closed=part.get("closed", instruction).strip() + "\n",
        documents="References:\n{documents}\n",
        rules="{rules}",
        query="{query}",
        answer=part.get("answer", "Answer:"),
    )


@cache
def _parts(prompt_file: str | None) -> dict[str, Any]:
    """Our prompts with the changes of the file: some texts of a prompt, the demonstrations of an attribute."""
    ours = read_prompt_file(str(files("lm_eval_rag.methods.crag") / "prompts.toml"))
    if prompt_file is None:
        return ours
    theirs = read_prompt_file(prompt_file)
    parts = dict(ours)
    for name, part in theirs.items():
        if name not in ours:
            raise unknown(f"prompt in {prompt_file}:", name, ours)
        CHECKS.get(name, _check_prompt)(prompt_file, name, part)
        parts[name] = {**ours[name], **part} if isinstance(part, dict) else part
    return parts if "version" in theirs else {**parts, "version": changed_version(ours, parts)}


def _check_version(path: str, name: str, part: Any) -> None:
    if not isinstance(part, str):
        raise UserError(f"The prompts in {path}: version = {part!r} is not allowed: give a text.")


def _check_demonstrations(path: str, name: str, part: Any) -> None:
    if not isinstance(part, dict) or not all(map(_are_lists, part.values())):
        raise UserError(f"The prompts in {path}: [demonstrations] holds lists of questions by label.")


def _are_lists(labels: Any) -> bool:
    lists = labels.values() if isinstance(labels, dict) else [None]
    return all(isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in lists)


def _check_prompt(path: str, name: str, part: Any) -> None:
    if not isinstance(part, dict) or set(part) - PARTS or not all(isinstance(text, str) for text in part.values()):
        raise UserError(
            f"The prompts in {path}: [{name}] may have the texts {', '.join(sorted(PARTS))}; found "
            f"{', '.join(sorted(part)) if isinstance(part, dict) else repr(part)}."
        )


def _check_examples(path: str, name: str, part: Any) -> None:
    rows = part.get("calls") if isinstance(part, dict) and set(part) == {"calls"} else None
    if not isinstance(rows, list) or not all(map(_is_example, rows)):
        raise UserError(
            f"The prompts in {path}: [examples] holds a list of calls, each with the texts asked, question and reply; "
            "the reply is a JSON list of objects with function_name."
        )


def _is_example(row: Any) -> bool:
    if not isinstance(row, dict) or set(row) != {"asked", "question", "reply"}:
        return False
    try:
        calls = json.loads(row["reply"])
    except (TypeError, ValueError):
        return False
    return isinstance(calls, list) and all(isinstance(call, dict) and "function_name" in call for call in calls)


CHECKS = {  # keys that are no prompts
    "version": _check_version, "demonstrations": _check_demonstrations, "examples": _check_examples,
}  # fmt: skip
