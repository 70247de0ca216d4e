"""``rulerag.json``: the description of a checkpoint that this project trained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import replace_text

NOTE = "rulerag.json"


@dataclass(frozen=True, slots=True)
class Note:
    """How a checkpoint was trained.

    Args:
        kind: Type of model.
        mode: ``rgft`` (with rules), ``ssft`` (without rules), ``base`` (not fine-tuned).
        prompt: Version of the prompt that a generator was fine-tuned on; None for a retriever.
        tasks: Tasks whose training sets were used.
        corpora: Ids of their corpora.
        settings: All training settings.
        seed: Seed of all random numbers.
        results: Measured results by name.
        versions: Versions of the packages used for training.
        base_tasks: Tasks whose training sets the base model had learned, as far as its own note says; None where this
            was not recorded.
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
    base_tasks: tuple[str, ...] | None = None

    @property
    def finished(self) -> bool:
        """Whether the training ended; before, a generator's folder has its best checkpoint so far."""
        return self.results.get("finished") is not False


def write_note(folder: Path, note: Note) -> None:
    """Write the note into a checkpoint's folder: all of it or, where the disk is full, none."""
    replace_text(folder / NOTE, note_text(note))


def note_text(note: Note) -> str:
    """The note as JSON."""
    return json.dumps(asdict(note), indent=1) + "\n"


def read_note(folder: Path) -> Note | None:
    """The note in a checkpoint's folder, or None if there is none.

    Raises:
        UserError: The note is damaged.
    """
    path = folder / NOTE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known: dict[str, Any] = {}
        for name in (one.name for one in fields(Note) if one.name in content):
            known[name] = tuple(content[name]) if isinstance(content[name], list) else content[name]
        return Note(**known)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}). Copy or train the checkpoint again.") from None
