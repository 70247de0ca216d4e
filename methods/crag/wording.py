"""The wording of every module's prompt, from one TOML file: ours, or the user's (``wording=FILE``)."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import Prompt, Shot, Template
from lm_eval_rag.harness.core.types import Passage, Query

PARTS = {"instruction", "closed", "answer"}
END = "===END==="  # ends the reasoning's form; every module stops there, so that no model goes on for ever


def prompt(
    name: str, text: str, references: tuple[Passage, ...] = (), shots: tuple[Shot, ...] = (), *, wording: str | None
) -> Prompt:
    """A module's prompt; its references are the more important the earlier, and the last are dropped to fit."""
    return Prompt(_templates(wording)[name], text, references, shots=shots)


def asked(query: Query) -> str:
    """The question, and when it was asked."""
    return f"Asked on: {query.time}\nQuestion: {query.text}" if query.time else f"Question: {query.text}"


def demonstrations(attribute: str, n: int, seed: int, wording: str | None) -> tuple[Shot, ...]:
    """``n`` seeded examples of an attribute, at most as many as there are: the same for every question."""
    pool = [(text, label) for label, texts in _demonstrations(wording)[attribute].items() for text in texts]
    drawn = random.Random(seed).sample(sorted(pool), min(n, len(pool)))
    return tuple(Shot(f"Question: {text}", label) for text, label in drawn)


@cache
def _templates(wording: str | None) -> dict[str, Template]:
    path, data = _read(wording)
    ours = _read(None)[1]
    version, parts = data.get("version"), {name: part for name, part in data.items() if isinstance(part, dict)}
    missing = sorted(set(ours) - set(data))
    if missing or not isinstance(version, str):
        raise UserError(f"The prompts in {path} lack {', '.join(missing) or 'a version'}. Start from a copy of ours.")
    return {name: _template(path, name, version, part) for name, part in parts.items() if name != "demonstrations"}


def _template(path: Path, name: str, version: str, part: dict[str, Any]) -> Template:
    unknown = sorted(set(part) - PARTS)
    if unknown or "instruction" not in part or not all(isinstance(text, str) for text in part.values()):
        raise UserError(
            f"The prompts in {path}: [{name}] needs the text 'instruction' and may have {', '.join(sorted(PARTS))}; "
            f"found {', '.join(sorted(part)) or 'nothing'}."
        )
    instruction = part["instruction"].strip() + "\n"  # an empty line parts it from what comes after
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


def _demonstrations(wording: str | None) -> dict[str, dict[str, list[str]]]:
    path, data = _read(wording)
    found: dict[str, dict[str, list[str]]] = data["demonstrations"]
    if not all(isinstance(text, str) for labels in found.values() for texts in labels.values() for text in texts):
        raise UserError(f"The prompts in {path}: [demonstrations] holds lists of questions by label.")
    return found


@cache
def _read(wording: str | None) -> tuple[Path, dict[str, Any]]:
    path = Path(wording or str(files("lm_eval_rag.methods.crag") / "prompts.toml"))
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"The prompts {path} cannot be read: {error.strerror}. Give a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"The prompts {path} are no TOML: {error}.") from None
