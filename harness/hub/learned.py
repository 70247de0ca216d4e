"""What the base of a checkpoint was trained on: its data's terms bind the checkpoint, too."""

from __future__ import annotations

import logging
from pathlib import Path

from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.checkpoints.note import NOTE, Note, read_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.hub.published_note import BASES, STATIC
from lm_eval_rag.harness.retrieval.encoders import PRESETS

log = logging.getLogger(__name__)
DEPTH = 20  # a base may have a base; a folder that was renamed may name itself


def base_tasks(note: Note, hub_id: str | None = None) -> tuple[str, ...]:
    """The tasks whose training sets the base model, its base and so on had learned, by their notes; () without notes.

    What the note itself has recorded comes first: the folder of the base may be gone.

    Args:
        hub_id: Where the base model is on the Hub, in case that the note names a folder which is not here.
    """
    tasks: dict[str, None] = {}
    for _ in range(DEPTH):
        if note.base_tasks is not None:
            return tuple({**tasks, **dict.fromkeys(note.base_tasks)})
        below = _note_of(str(note.settings.get(BASES[note.kind]) or ""), hub_id)
        if below is None:
            break
        tasks |= dict.fromkeys(below.tasks)
        note, hub_id = below, None
    return tuple(tasks)


def _note_of(base: str, hub_id: str | None) -> Note | None:
    """The note of a base model; None if it has none, or if it cannot be had, which is logged."""
    if base in ("", STATIC, *PRESETS):
        return None
    folder = EMBEDDED.get(base, Path(base).expanduser())
    try:
        return read_note(folder if folder.is_dir() else fetch_folder(hub_id or base, only=[NOTE]))
    except UserError as error:
        log.warning("What the base model %s was trained on is not known: %s", base, error)
        return None
