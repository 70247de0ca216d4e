"""The folder of a fine-tuned generator: what it holds while it is made, and what stays."""

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
from lm_eval_rag.harness.train.curves import write_curves

log = logging.getLogger(__name__)
MADE_BY = ("lm-eval-rag", "lm_eval", "torch", "transformers", "trl", "peft", "accelerate")


@dataclass(slots=True)
class Outcome:
    """Keeps the best checkpoint of a run in its folder, and in ``state`` beneath it what the run resumes from.

    Args:
        out: The folder.
        mode: ``rgft`` or ``ssft``.
        settings: All that the run is made of; a folder of another run is refused.
        prompt: Version of the prompts.
        known: Counts that go into the results.

    Raises:
        UserError: The folder holds something else, or a run with other settings.
    """

    out: Path
    mode: Literal["rgft", "ssft"]
    settings: Mapping[str, Any]
    prompt: str | None = None
    known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = json.loads(json.dumps(self.settings))
        made = self._settings_there()
        if made is None and self.out.is_dir() and any(self.out.iterdir()):
            raise UserError(f"The folder {self.out} is not empty and holds no run of ours. Give another --out.")
        if made not in (None, self.settings):
            other = [key for key in self.settings if (made or {}).get(key) != self.settings[key]]
            raise UserError(
                f"The folder {self.out} holds a run with other settings ({', '.join(other)}). Repeat that run's "
                "command to go on with it, give another --out, or delete the folder."
            )
        self.state.mkdir(parents=True, exist_ok=True) if self.finished is None else None
        if self.finished is None:
            _write(self.state / "settings.json", self.settings)

    @property
    def state(self) -> Path:
        """What a run resumes from."""
        return self.out / "state"

    @property
    def finished(self) -> dict[str, Any] | None:
        """The results of a run that is done; None before."""
        note = read_note(self.out)
        return dict(note.results) if note and note.results.get("finished") else None

    def last_state(self) -> Path | None:
        """The last whole state; torn ones of a kill are deleted."""
        whole = []
        for folder in self.state.glob("checkpoint-*"):
            if (folder / "trainer_state.json").is_file():  # written last
                whole.append(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return max(whole, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)

    def keep(self, model: Any, tokenizer: Any, results: Mapping[str, Any]) -> None:
        """Put a checkpoint into the folder in place of the one before; file by file, each whole at any time."""
        beside = self.state / "best"
        shutil.rmtree(beside, ignore_errors=True)
        model.save_pretrained(beside)
        tokenizer.save_pretrained(beside)
        for path in sorted(beside.iterdir()):
            os.replace(path, self.out / path.name)
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
                versions={name: version(name) for name in MADE_BY},
            ),
        )

    def curves(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Loss and dev scores so far, as JSON and as a picture."""
        write_curves(self.out, rows)

    def finish(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Mark the run as done and delete what it would resume from."""
        whole = {**self.known, **results, "finished": True}
        self.note(whole)
        shutil.rmtree(self.state, ignore_errors=True)
        return whole

    def _settings_there(self) -> Any:
        """The settings of the run that the folder holds, or None."""
        path = self.state / "settings.json"
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        note = read_note(self.out)
        return note.settings if note else None


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
