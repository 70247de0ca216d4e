"""Warnings about checkpoints whose training did not end, or that learned from other data than they are asked about."""

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


def warn_of_training(setup: Setup, corpora: Iterable[str | None]) -> None:
    """A warning each for generator and retriever: a training that did not end, another version of the data."""
    asked, adapter = list(corpora), Path(str(setup.corpora.options.get("adapter", "")))
    notes = {"generator": setup.generator.spec.note, "retriever": read_note(adapter) if adapter.is_dir() else None}
    for kind, note in notes.items():
        if note and not note.finished:
            log.warning(
                "The training of the %s did not end: this is its best checkpoint so far. Run the command of the "
                "training again to resume it.", kind
            )  # fmt: skip
        pairs = ", ".join(f"{trained}, asked about {id_}" for trained, id_ in other_data(note, asked))
        if pairs:
            log.warning(
                "The %s was trained on another version or variant of the data (%s): its training questions may be "
                "among these. Its results are not comparable with those of a checkpoint of this version.", kind, pairs
            )  # fmt: skip
