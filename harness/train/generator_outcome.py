"""The folder of a fine-tuned generator: training state, best checkpoint, note and curves."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.checkpoints.note import Note, read_note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import replace_text
from lm_eval_rag.harness.hub.learned import base_tasks
from lm_eval_rag.harness.train.curves import write_curves

log = logging.getLogger(__name__)
PACKAGES = ("lm-eval-rag", "lm_eval", "torch", "transformers", "trl", "peft", "accelerate")


@dataclass(slots=True)
class Outcome:
    """Keeps the best checkpoint of a run in its folder, and the training state in the subfolder ``state``.

    Args:
        out: The folder.
        mode: ``rgft`` or ``ssft``.
        settings: All settings of the run; a folder with other settings is refused.
        prompt: Version of the prompts.
        known: Counts that are added to the results.

    Raises:
        UserError: The folder contains something else, or a run with other settings.
    """

    out: Path
    mode: Literal["rgft", "ssft"]
    settings: Mapping[str, Any]
    prompt: str | None = None
    known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = json.loads(json.dumps(self.settings))
        stored = self._stored_settings()
        if stored is None and any(path.is_file() and path.suffix != ".new" for path in self.out.rglob("*")):
            raise UserError(f"The folder {self.out} is not empty and contains no training run. Give another --out.")
        if stored not in (None, self.settings):
            other = [key for key in self.settings if (stored or {}).get(key) != self.settings[key]]
            raise UserError(
                f"The folder {self.out} contains a run with other settings ({', '.join(other)}). Repeat that run's "
                "command to resume it, give another --out, or delete the folder."
            )

    @property
    def state(self) -> Path:
        """Folder of the training state."""
        return self.out / "state"

    @property
    def finished(self) -> dict[str, Any] | None:
        """The results of a finished run; None before."""
        note = read_note(self.out)
        return dict(note.results) if note and note.finished else None

    @property
    def advice(self) -> str:
        """What to do where the folder cannot be written, by what it holds."""
        kept = "The best checkpoint so far is kept" if read_note(self.out) else "No checkpoint is kept yet"
        goes_on = "resumes from the last complete state" if self.last_state() else "starts again"
        return f"Free space there. {kept}, and the same command {goes_on}."

    def begin(self) -> None:
        """Write the settings: from here on the folder is that of this run, and another run is refused."""
        self.state.mkdir(parents=True, exist_ok=True)
        replace_text(self.state / "settings.json", json.dumps(self.settings, indent=1))

    def last_state(self) -> Path | None:
        """The last complete state; incomplete ones of a killed run are deleted."""
        complete = []
        for folder in self.state.glob("checkpoint-*"):
            if _is_json(folder / "trainer_state.json"):  # written last
                complete.append(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return max(complete, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)

    def keep(self, model: Any, tokenizer: Any, results: Mapping[str, Any]) -> None:
        """Replace the folder's checkpoint. Each file is replaced atomically."""
        temporary = self.state / "best"
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            model.save_pretrained(temporary)
            (temporary / "README.md").unlink(missing_ok=True)  # the empty template of a card that PEFT writes
            tokenizer.save_pretrained(temporary)
            for path in sorted(temporary.iterdir()):
                os.replace(path, self.out / path.name)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self.note({**results, "finished": False})

    def note(self, results: Mapping[str, Any]) -> None:
        """Write ``rulerag.json``."""
        corpora = self.settings["corpora"]
        write_note(
            self.out,
            Note(
                kind="generator",
                mode=self.mode,
                prompt=self.prompt,
                tasks=tuple(corpora),
                corpora=tuple(corpora.values()),
                settings=self.settings,
                seed=self.settings["seed"],
                results={**self.known, **results},
                versions={name: version(name) for name in PACKAGES},
                base_tasks=base_tasks(Note("generator", self.mode, settings=self.settings)),
            ),
        )

    def curves(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write loss and dev scores so far, as JSON and as a figure."""
        write_curves(self.out, rows)

    def finish(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Mark the run as finished and delete the training state."""
        final = {**self.known, **results, "finished": True}
        self.note(final)
        shutil.rmtree(self.state, ignore_errors=True)
        return final

    def _stored_settings(self) -> Any:
        """The settings of the run in the folder, or None."""
        path = self.state / "settings.json"
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        note = read_note(self.out)
        return note.settings if note else None


def _is_json(path: Path) -> bool:
    """Whether a file is there and whole; a full disk may leave one that is cut."""
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
