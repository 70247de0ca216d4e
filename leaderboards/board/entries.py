"""Reads the entries of a board: folders of submissions, scored anew; results are kept, since they never change."""

from __future__ import annotations

import hashlib
import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.leaderboards.board.families import family_of
from lm_eval_rag.leaderboards.board.resampling import Floats
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey, answer_key, scorer_hash
from lm_eval_rag.leaderboards.submissions.board_judge import BoardJudge, read_board_judge
from lm_eval_rag.leaderboards.submissions.claims import read_claim
from lm_eval_rag.leaderboards.submissions.clearances import Clearance, read_clearances
from lm_eval_rag.leaderboards.submissions.form import Card, Prediction, slug_of
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, Submission, is_claim, read_submission
from lm_eval_rag.leaderboards.submissions.records import read_withdrawn
from lm_eval_rag.leaderboards.submissions.tiers import RE_SCORED, digest_of, read_reruns, tier_of
from lm_eval_rag.leaderboards.submissions.verifying import TaskScores, scored

log = logging.getLogger(__name__)
SAMPLED = 50  # answers of a task that are kept whole, for the page of the entry


@dataclass(frozen=True, slots=True)
class Result:
    """What an entry has on one task. Arrays are in the order of the task's questions.

    Args:
        scores: Metric -> scores, NaN where there is none.
        answers: Of all questions.
        abstained: Whether an answer is an abstention.
        confidence: Of the answers, 0 where the system abstains; None if not all answers have one.
        sample: Some predictions: half of them right and half wrong, as far as there are so many.
        cost: Means of a question, of what all questions declare.
        flags: What a maintainer should look at.
    """

    scores: Mapping[str, Floats]
    answers: tuple[str, ...]
    abstained: np.ndarray
    confidence: Floats | None
    sample: Mapping[str, Prediction]
    cost: Mapping[str, float]
    flags: tuple[str, ...] = ()

    def mean(self, metric: str) -> float:
        """The mean of a metric over the questions that have it."""
        return float(np.nanmean(self.scores[metric]))


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted entry.

    Args:
        slug: Its name in addresses, unique on the board.
        path: Its folder.
        digest: Hash of its files.
        tier: ``re-scored`` or ``re-run`` (:mod:`lm_eval_rag.leaderboards.submissions.tiers`).
        cleared: A maintainer's record by which it is ranked in spite of its flags.
    """

    slug: str
    card: Card
    path: Path
    digest: str
    tasks: Mapping[str, Result]
    tier: str = RE_SCORED
    cleared: Clearance | None = None

    @property
    def family(self) -> str:
        """The family of its method."""
        return family_of(self.card.method)

    def is_foreign(self, task: str) -> bool:
        """Whether it answered a task over a corpus of its own: shown apart, and not ranked."""
        return answer_key(task).sheet.is_foreign(self.card.tasks[task].corpus)

    def waits(self, task: str) -> bool:
        """Whether its flags on a task keep it from being ranked."""
        return bool(self.tasks[task].flags) and self.cleared is None


@dataclass(frozen=True, slots=True)
class Refused:
    """A folder that is not on the board: refused, or withdrawn."""

    name: str
    reason: str


def read_entries(folder: Path) -> tuple[list[Entry], list[Refused]]:
    """All entries in the folders of a folder, in the order of their names.

    ``withdrawn.json`` (folder -> reason) takes an entry off the board and leaves a trace of it. ``cleared.json`` lets
    entries be ranked in spite of a flag.

    Raises:
        UserError: The folder is not there, or one of these files is malformed.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder. Give the folder that holds the folders of submissions.")
    withdrawn = read_withdrawn(folder)
    reruns, clearances, judge = read_reruns(folder), read_clearances(folder), read_board_judge(folder)
    entries, refused, taken = [], [], dict[str, str]()
    for path in sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith(".")):
        try:
            if path.name in withdrawn:
                raise RefusedError(f"withdrawn: {withdrawn[path.name]}")
            if is_claim(path):
                read_claim(path)  # shown apart: claims_in
                continue
            entry = _entry(path, judge)
            cleared = clearances.get(path.name)
            entry = replace(
                entry,
                tier=tier_of(path, list(entry.tasks), reruns),
                cleared=cleared if cleared is not None and cleared.entry == entry.digest else None,
            )
            if entry.slug in taken:
                raise RefusedError(f"The name is taken by {taken[entry.slug]}. Choose another --name.")
        except RefusedError as error:
            log.warning("%s is not on the board: %s", path.name, error)
            refused.append(Refused(path.name, str(error)))
            continue
        taken[entry.slug] = path.name
        entries.append(entry)
    return entries, refused


def _entry(path: Path, judge: BoardJudge | None) -> Entry:
    """Read one folder; its scores come from an earlier reading if files, data, scorer and verdicts are."""
    submission = read_submission(path)
    card, digest = submission.card, digest_of(path)
    name = hashlib.sha256(f"{scorer_hash()} {digest} {judge.digest if judge else None}".encode()).hexdigest()[:32]
    kept = cache_dir() / "board" / f"{name}.npz"
    tasks = _read_kept(kept, submission)
    if tasks is None:
        verified = scored(submission, judge).tasks
        tasks = {task: _result(answer_key(task), submission.predictions[task], one) for task, one in verified.items()}
        _keep(kept, {task: (one.data, tasks[task]) for task, one in verified.items()})
    return Entry(slug_of(card.name), card, path, digest, tasks)


def _result(key: AnswerKey, predictions: Mapping[str, Prediction], one: TaskScores) -> Result:
    arrays = {
        metric: np.array([values.get(id, np.nan) for id in key.questions], dtype=np.float64)
        for metric, values in one.scores.items()
        if values
    }
    return _with_texts(key, predictions, arrays, one.cost, one.flags)


def _with_texts(
    key: AnswerKey,
    predictions: Mapping[str, Prediction],
    arrays: Mapping[str, Floats],
    cost: Mapping[str, float],
    flags: Iterable[str],
) -> Result:
    ordered = [predictions[id] for id in key.questions]
    confidence = [0.0 if one.abstained else one.confidence for one in ordered]
    return Result(
        arrays,
        tuple(one.answer for one in ordered),
        np.array([one.abstained for one in ordered], dtype=bool),
        None if None in confidence else np.array(confidence, dtype=np.float64),
        {id: predictions[id] for id in sampled(list(key.questions), arrays.get("em"))},
        cost,
        tuple(flags),
    )


def sampled(ids: Sequence[str], right: Floats | None) -> list[str]:
    """Ids of a sample, drawn with a seed: half of it right and half wrong, as far as there are so many."""
    drawn = random.Random(0)
    if right is None:
        return drawn.sample(ids, min(len(ids), SAMPLED))
    hits = [id for id, value in zip(ids, right, strict=True) if value > 0]
    misses = [id for id, value in zip(ids, right, strict=True) if not value > 0]
    share = SAMPLED // 2
    chosen = drawn.sample(hits, min(len(hits), max(share, SAMPLED - len(misses))))
    return chosen + drawn.sample(misses, min(len(misses), max(share, SAMPLED - len(hits))))


def _keep(path: Path, tasks: Mapping[str, tuple[str, Result]]) -> None:
    """Write the scores of an entry, by task and metric, with what is no array in one text."""
    about = {task: [data, dict(one.cost), list(one.flags)] for task, (data, one) in tasks.items()}
    arrays: dict[str, Any] = {
        f"{task}/{metric}": values for task, (_, one) in tasks.items() for metric, values in one.scores.items()
    }
    content = BytesIO()
    np.savez_compressed(content, about=np.array(json.dumps(about)), **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.getvalue())


def _read_kept(path: Path, submission: Submission) -> dict[str, Result] | None:
    """Scores of an earlier reading; None if there are none, or the data have moved since."""
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as kept:
            about = json.loads(str(kept["about"]))
            arrays = {name: kept[name] for name in kept.files if name != "about"}
    except (ValueError, OSError, KeyError):
        return None
    if set(about) != set(submission.card.tasks) or any(answer_key(task).data != about[task][0] for task in about):
        return None
    return {
        task: _with_texts(
            answer_key(task),
            submission.predictions[task],
            {name.partition("/")[2]: values for name, values in arrays.items() if name.startswith(f"{task}/")},
            cost,
            flags,
        )
        for task, (_, cost, flags) in about.items()
    }
