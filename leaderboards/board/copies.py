"""Finds entries whose wrong answers are those of another entry: right answers agree anyway, copies agree in wrong ones.

The measure is that of :func:`lm_eval_rag.leaderboards.submissions.suspicions.alike`, for all pairs of a board at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.leaderboards.board.entries import Entry
from lm_eval_rag.leaderboards.submissions.suspicions import ALIKE, ENOUGH, copy_flag


def with_copies_flagged(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, with a flag on those whose wrong answers are those of another entry."""
    flags: dict[tuple[str, str], list[str]] = {}
    for task in sorted({task for entry in entries for task in entry.tasks}):
        own = [entry for entry in entries if task in entry.tasks]
        for (first, second), share in shares_alike(own, task).items():
            flags.setdefault((own[first].slug, task), []).append(copy_flag(share, own[second].card.name))
    return [
        replace(
            entry,
            tasks={
                task: replace(result, flags=(*result.flags, *flags.get((entry.slug, task), ())))
                for task, result in entry.tasks.items()
            },
        )
        for entry in entries
    ]


def shares_alike(entries: Sequence[Entry], task: str) -> dict[tuple[int, int], float]:
    """(place of an entry, place of another) -> the share of the first's wrong answers that the second gives too.

    Only shares of :data:`ALIKE` and more, of at least :data:`ENOUGH` wrong answers.
    """
    normal = cache(normalise)
    places: dict[str, int] = {}
    codes = np.array(
        [[places.setdefault(normal(answer), len(places)) for answer in one.tasks[task].answers] for one in entries],
        dtype=np.int32,
    )
    alike = dict[tuple[int, int], float]()
    for first, entry in enumerate(entries):
        result = entry.tasks[task]
        right = result.scores.get("em")
        wrong = np.flatnonzero((right == 0) & ~result.abstained) if right is not None else np.zeros(0, dtype=int)
        if len(wrong) < ENOUGH:
            continue
        shares = (codes[:, wrong] == codes[first, wrong]).mean(axis=1)
        alike |= {(first, int(i)): float(shares[i]) for i in np.flatnonzero(shares >= ALIKE) if i != first}
    return alike
