"""``rulerag.json``: what a checkpoint of ours says about itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError

NOTE = "rulerag.json"


@dataclass(frozen=True, slots=True)
class Note:
    """How a checkpoint was made.

    Args:
        kind: What it is.
        mode: ``rgft`` (with rules), ``ssft`` (without), ``base`` (not tuned).
        prompt: Version of the prompt that a generator was tuned on; None for a retriever.
        tasks: Tasks whose training sets it saw.
        corpora: Their corpora's ids.
        settings: Everything that was set.
        seed: Of all draws.
        results: What was measured, by name.
        versions: Of the packages that made it.
    """

    kind: Literal["retriever", "generator"]
    mode: Literal["rgft", "ssft", "base"]
    prompt: str | None = None
    tasks: tuple[str, ...] = ()
    corpora: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    results: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def write_note(folder: Path, note: Note) -> None:
    """Write the note into a checkpoint's folder."""
    (folder / NOTE).write_text(json.dumps(asdict(note), indent=1) + "\n", encoding="utf-8")


def read_note(folder: Path) -> Note | None:
    """The note of a checkpoint's folder, None where there is none.

    Raises:
        UserError: The note is damaged.
    """
    path = folder / NOTE
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = {name.name: found[name.name] for name in fields(Note) if name.name in found}
        return Note(**{**known, "tasks": tuple(known.get("tasks", ())), "corpora": tuple(known.get("corpora", ()))})
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}). Copy or train the checkpoint again.") from None
