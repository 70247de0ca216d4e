"""Compares a submission with the entries of a board, when it is verified: wrong answers agree between copies alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lm_eval_rag.leaderboards.submissions.form import CARD
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, Submission, read_submission
from lm_eval_rag.leaderboards.submissions.suspicions import ALIKE, alike, copy_flag
from lm_eval_rag.leaderboards.submissions.verifying import Verified

log = logging.getLogger(__name__)


def with_copies_flagged(verified: Verified, entries: Path) -> Verified:
    """The submission, with a flag on each task whose wrong answers are those of an entry.

    Args:
        entries: The folder of a board's entries. An entry of the submission's own name is an earlier version of it, and
            is not compared; nor are folders that cannot be read, and entries on other data.
    """
    if not entries.is_dir():
        log.warning("There is no folder %s, so the submission was compared with no entry.", entries)
    own, tasks = verified.submission, dict(verified.tasks)
    for other in _entries(entries):
        if other.card.name == own.card.name:
            continue
        for name, scores in tasks.items():
            right = scores.scores.get("em")
            if right is None or name not in other.card.tasks or other.card.tasks[name].data != scores.data:
                continue
            share = alike(own.predictions[name], other.predictions[name], right)
            if share >= ALIKE:
                tasks[name] = replace(scores, flags=(*scores.flags, copy_flag(share, other.card.name)))
    return replace(verified, tasks=tasks)


def _entries(folder: Path) -> Iterator[Submission]:
    for card in sorted(folder.glob(f"*/{CARD}")):
        try:
            yield read_submission(card.parent)
        except RefusedError:
            continue
