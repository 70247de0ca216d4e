"""Scores without predictions: a folder with ``claim.json`` alone. Nobody can recompute them; they are never ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.leaderboards.submissions.form import CARD_BYTES, CLAIM, Claim
from lm_eval_rag.leaderboards.submissions.question_sheet import own_tasks
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, is_claim, parsed, read_bytes, shown


def read_claim(folder: Path) -> Claim:
    """Read a folder that nobody vouches for.

    Raises:
        RefusedError: There is anything beside the claim, it is no plain file, or it names an unknown task or metric, or
            a score that cannot be.
    """
    others = sorted(path.name for path in folder.iterdir() if path.name != CLAIM)
    if others:
        raise RefusedError(f"{shown(others[0])} lies beside {CLAIM}. Send predictions without it, or the claim alone.")
    if folder.is_symlink() or (folder / CLAIM).is_symlink() or not (folder / CLAIM).is_file():
        raise RefusedError(f"{CLAIM} is no plain file. Links, folders and devices are not read.")
    claim = parsed(Claim, read_bytes(folder / CLAIM, CARD_BYTES), CLAIM)
    for task, scores in claim.scores.items():
        if task not in own_tasks():
            raise RefusedError(f"{CLAIM}: there is no task {task!r}. `lm-eval-rag describe` lists all tasks.")
        for metric, value in scores.items():
            if metric not in METRICS:
                raise RefusedError(
                    f"{CLAIM}, {task}: there is no metric {shown(metric)}. `lm-eval-rag describe` has all."
                )
            low, high = METRICS[metric].bounds
            if not low <= value <= high:
                raise RefusedError(f"{CLAIM}, {task}: {metric} is {value}, and lies between {low} and {high}.")
    return claim


def claims_in(folder: Path) -> dict[str, Claim]:
    """Folder -> claim, of all folders of a board that hold a claim which is not refused."""
    claims: dict[str, Claim] = {}
    for path in sorted(one for one in folder.iterdir() if one.is_dir() and is_claim(one)):
        try:
            claims[path.name] = read_claim(path)
        except RefusedError:
            continue
    return claims


def verdict_of(claim: Claim) -> dict[str, Any]:
    """As JSON, like that of a submission."""
    return {
        "accepted": True,
        "tier": "self-reported",
        "reason": "There are no predictions, so no score was recomputed: the entry is shown apart and never ranked. "
        "Send predictions to have it ranked.",
        "tasks": {task: {"claimed": dict(scores)} for task, scores in claim.scores.items()},
    }
