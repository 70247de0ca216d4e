"""Reads the entries of a board: folders of submissions, scored anew; results are kept, since they never change."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.leaderboards.submissions.answer_key import answer_key, scorer_hash
from lm_eval_rag.leaderboards.submissions.claims import read_claim
from lm_eval_rag.leaderboards.submissions.form import CARD, Card, Prediction, slug_of
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, is_claim, read_submission
from lm_eval_rag.leaderboards.submissions.suspicions import ALIKE, alike
from lm_eval_rag.leaderboards.submissions.tiers import RE_SCORED, read_reruns, tier_of
from lm_eval_rag.leaderboards.submissions.verifying import TaskScores, scored

log = logging.getLogger(__name__)
WITHDRAWN = "withdrawn.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted entry.

    Args:
        slug: Its name in addresses, unique on the board.
        path: Its folder.
        predictions: Task -> question id -> prediction.
        tier: ``re-scored`` or ``re-run`` (:mod:`lm_eval_rag.leaderboards.submissions.tiers`).
    """

    slug: str
    card: Card
    path: Path
    predictions: Mapping[str, Mapping[str, Prediction]]
    tasks: Mapping[str, TaskScores]
    tier: str = RE_SCORED

    def is_foreign(self, task: str) -> bool:
        """Whether it answered a task over a corpus of its own: shown apart, and not ranked."""
        return answer_key(task).sheet.is_foreign(self.card.tasks[task].corpus)


@dataclass(frozen=True, slots=True)
class Refused:
    """A folder that is not on the board: refused, or withdrawn."""

    name: str
    reason: str


def read_entries(folder: Path) -> tuple[list[Entry], list[Refused]]:
    """All entries in the folders of a folder, in the order of their names.

    ``withdrawn.json`` (folder -> reason) takes an entry off the board and leaves a trace of it.

    Raises:
        UserError: The folder is not there, or withdrawn.json is malformed.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder. Give the folder that holds the folders of submissions.")
    withdrawn, reruns = _withdrawn(folder / WITHDRAWN), read_reruns(folder)
    entries, refused, taken = [], [], dict[str, str]()
    for path in sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith(".")):
        try:
            if path.name in withdrawn:
                raise RefusedError(f"withdrawn: {withdrawn[path.name]}")
            if is_claim(path):
                read_claim(path)  # shown apart: claims_in
                continue
            entry = _entry(path)
            entry = replace(entry, tier=tier_of(path, list(entry.tasks), reruns))
            if entry.slug in taken:
                raise RefusedError(f"The name is taken by {taken[entry.slug]}. Choose another --name.")
        except RefusedError as error:
            log.warning("%s is not on the board: %s", path.name, error)
            refused.append(Refused(path.name, str(error)))
            continue
        taken[entry.slug] = path.name
        entries.append(entry)
    return with_copies_flagged(entries), refused


def with_copies_flagged(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, with a flag on those whose wrong answers are those of another entry."""
    flags: dict[tuple[str, str], list[str]] = {}
    for first, second in permutations(entries, 2):
        for task in sorted(set(first.tasks) & set(second.tasks)):
            right = first.tasks[task].scores.get("em", {})
            share = alike(first.predictions[task], second.predictions[task], right)
            if share >= ALIKE:
                text = f"{100 * share:.0f} % of its wrong answers are those of {second.card.name!r}."
                flags.setdefault((first.slug, task), []).append(text)
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


def _entry(path: Path) -> Entry:
    """Read one folder; its scores come from an earlier reading if files, data and scorer are the same."""
    submission = read_submission(path)
    digest = hashlib.sha256(scorer_hash().encode())
    for file in (path / CARD, *sorted((path / "predictions").iterdir())):
        digest.update(file.name.encode() + file.read_bytes())
    kept = cache_dir() / "board" / f"{digest.hexdigest()[:32]}.json"
    tasks: Mapping[str, TaskScores] | None = _read_kept(kept, submission.card)
    if tasks is None:
        tasks = scored(submission).tasks
        kept.parent.mkdir(parents=True, exist_ok=True)
        whole = {name: [one.data, one.scores, one.cost, one.flags] for name, one in tasks.items()}
        kept.write_text(json.dumps(whole), encoding="utf-8")
    return Entry(slug_of(submission.card.name), submission.card, path, submission.predictions, tasks)


def _read_kept(path: Path, card: Card) -> dict[str, TaskScores] | None:
    """Scores of an earlier reading; None if there are none, or the data have moved since."""
    if not path.is_file():
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        tasks = {
            task: TaskScores(task, data, scores, cost, tuple(flags))
            for task, (data, scores, cost, flags) in kept.items()
        }
    except (ValueError, TypeError):
        return None
    return tasks if all(answer_key(task).data == tasks[task].data for task in card.tasks) else None


def _withdrawn(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f'{path} is not JSON ({error}). Write {{"FOLDER": "why it was withdrawn"}}.') from None
    if not isinstance(content, dict) or not all(isinstance(reason, str) for reason in content.values()):
        raise UserError(f'{path}: write an object of texts, {{"FOLDER": "why it was withdrawn"}}.')
    return content
