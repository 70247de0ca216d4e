"""The prompts of the modules, from our TOML file; ``prompt_file=FILE`` names another with those that differ."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.prompts import Prompt, Shot, Template
from lm_eval_rag.harness.core.types import Passage, Query

PARTS = ("instruction", "closed", "answer")
DEMONSTRATIONS = "demonstrations"
END = "===END==="  # ends the reasoning form; every module stops there, so that no model goes on forever


def prompt(
    name: str, text: str, references: tuple[Passage, ...] = (), shots: tuple[Shot, ...] = (), *, prompt_file: str | None
) -> Prompt:
    """The prompt of a module; references are in order of importance, and the last ones are dropped to fit."""
    return Prompt(_templates(prompt_file)[name], text, references, shots=shots)


def question_text(query: Query) -> str:
    """The question, and when it was asked."""
    return f"Asked on: {query.time}\nQuestion: {query.text}" if query.time else f"Question: {query.text}"


def demonstrations(attribute: str, n: int, seed: int, prompt_file: str | None) -> tuple[Shot, ...]:
    """``n`` seeded examples of an attribute, or all if there are fewer; the same ones for every question."""
    labels: dict[str, list[str]] = _parts(prompt_file)[1][DEMONSTRATIONS][attribute]
    pool = [(text, label) for label, texts in labels.items() for text in texts]
    drawn = random.Random(seed).sample(sorted(pool), min(n, len(pool)))
    return tuple(Shot(f"Question: {text}", label) for text, label in drawn)


@cache
def _templates(prompt_file: str | None) -> dict[str, Template]:
    version, prompts = _parts(prompt_file)
    return {name: _template(version, parts) for name, parts in prompts.items() if name != DEMONSTRATIONS}


def _template(version: str, parts: dict[str, str]) -> Template:
    instruction = parts["instruction"].strip() + "\n"  # an empty line separates it from what follows
    return Template(
        version=version,
        instruction=instruction,
        instruction_rules=instruction,
        instruction_closed=parts.get("closed", instruction).strip() + "\n",
        documents="References:\n{documents}\n",
        rules="{rules}",
        query="{query}",
        answer=parts.get("answer", "Answer:"),
    )


@cache
def _parts(prompt_file: str | None) -> tuple[str, dict[str, Any]]:
    """The version and the parts of every prompt: the file's, and ours for those that it leaves out."""
    ours = _read(Path(str(files("lm_eval_rag.methods.crag") / "prompts.toml")))
    theirs = _read(Path(prompt_file)) if prompt_file else ours
    version = theirs.get("version")
    if not isinstance(version, str):
        raise UserError(f'The prompts in {prompt_file} need a version of their own: add version = "NAME".')
    merged = {name: dict(parts) for name, parts in ours.items() if name != "version"}
    for name, parts in theirs.items():
        if name != "version":
            _check(f"The prompts in {prompt_file}", name, parts, merged)
            merged[name] |= parts
    return version, merged


def _check(where: str, name: str, parts: Any, known: dict[str, Any]) -> None:
    if name not in known:
        raise unknown("prompt", name, known, hint=f"{where} may hold these.")
    allowed = known[name] if name == DEMONSTRATIONS else PARTS
    if not isinstance(parts, dict) or not set(parts) <= set(allowed):
        raise UserError(f"{where}: [{name}] must hold some of {', '.join(allowed)}, and nothing else.")
    if name != DEMONSTRATIONS and not all(isinstance(text, str) for text in parts.values()):
        raise UserError(f"{where}: [{name}] must hold texts.")
    if name == DEMONSTRATIONS and not all(_are_questions(labels) for labels in parts.values()):
        raise UserError(f"{where}: [{name}] must hold lists of questions by attribute and label.")


def _are_questions(labels: Any) -> bool:
    return isinstance(labels, dict) and all(
        isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in labels.values()
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"The prompts {path} cannot be read: {error.strerror}. Give a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"The prompts {path} are no TOML: {error}.") from None
