"""Checkpoints that were trained on other data than those that they are asked about."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from lm_eval_rag.harness.checkpoints.note import Note, read_note
from lm_eval_rag.harness.plugin.arguments import Setup

log = logging.getLogger(__name__)


def other_data(note: Note | None, corpora: Iterable[str | None]) -> list[tuple[str, str]]:
    """(corpus of the training, corpus of the questions) for each task of which they differ.

    Args:
        corpora: Ids of the corpora that are asked about, ``TASK/HASH``; the hash stands for version and variant.
    """
    trained = {id_.partition("/")[0]: id_ for id_ in (note.corpora if note else ())}
    asked = [id_ for id_ in dict.fromkeys(corpora) if id_]
    return [(trained[task], id_) for id_ in asked if trained.get(task := id_.partition("/")[0], id_) != id_]


def warn_of_other_data(setup: Setup, corpora: Iterable[str | None]) -> None:
    """One warning for a generator, and one for a retriever, that was trained on another version of the data."""
    asked, adapter = list(corpora), Path(str(setup.corpora.options.get("adapter", "")))
    notes = {"generator": setup.generator.spec.note, "retriever": read_note(adapter) if adapter.is_dir() else None}
    for kind, note in notes.items():
        pairs = ", ".join(f"{trained}, asked about {id_}" for trained, id_ in other_data(note, asked))
        if pairs:
            log.warning(
                "The %s was trained on another version or variant of the data (%s): its training questions may be "
                "among these. Its results are not comparable with those of a checkpoint of this version.", kind, pairs
            )  # fmt: skip
