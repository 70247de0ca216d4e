"""Tiers: how far the numbers of an entry were checked.

- ``self-reported``: scores without predictions (:mod:`lm_eval_rag.leaderboards.submissions.claims`); never ranked.
- ``re-scored``: every score was computed from the predictions.
- ``re-run``: a maintainer ran the system too, and its scores are those of the predictions. ``reruns.json`` in the
  folder of a board's entries records this. It is a maintainer's file: an entry cannot hold it. It names the entry's
  content, so it says nothing of an entry that has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.report.stats import paired
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.leaderboards.submissions.answer_key import answer_key
from lm_eval_rag.leaderboards.submissions.form import CARD, PREDICTIONS, Form, Hash, Name, Task
from lm_eval_rag.leaderboards.submissions.packing import of_runs
from lm_eval_rag.leaderboards.submissions.records import read_records, write_records
from lm_eval_rag.leaderboards.submissions.verifying import Verified

RERUNS = "reruns.json"
SELF_REPORTED, RE_SCORED, RE_RUN = "self-reported", "re-scored", "re-run"
ALPHA = 0.05  # a re-run whose difference has a smaller p is another result
POINT = 0.01  # unless the difference is smaller than this: on many questions every difference is significant


class Compared(Form):
    """One task of an entry and of its re-run.

    Args:
        metric: The task's main metric.
        entry: Its mean by the entry's predictions; ``rerun`` is the maintainer's.
        same: Share of the questions with the same answer, in normal form.
    """

    metric: Name
    entry: float
    rerun: float
    same: Annotated[float, Field(ge=0, le=1)]


class Rerun(Form):
    """A maintainer's record.

    Args:
        entry: Hash of the entry's files.
        by: Who ran it.
        date: Day of the run, such as ``2026-11-22``.
        package: Version of lm-eval-rag.
    """

    entry: Hash
    by: Name
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    package: Name
    tasks: Annotated[dict[Task, Compared], Field(min_length=1)]


RECORDS = TypeAdapter(dict[str, Rerun])


def tier_of(folder: Path, tasks: Sequence[str], reruns: Mapping[str, Rerun]) -> str:
    """The tier of an entry with predictions: ``re-run`` if a record covers all its tasks, else ``re-scored``."""
    record = reruns.get(folder.name)
    covered = record is not None and set(tasks) <= set(record.tasks) and record.entry == digest_of(folder)
    return RE_RUN if covered else RE_SCORED


def digest_of(folder: Path) -> str:
    """Hash of the files of an entry."""
    digest = hashlib.sha256()
    for path in (folder / CARD, *sorted((folder / PREDICTIONS).iterdir())):
        digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def rerun_of(folder: Path, verified: Verified, runs: Sequence[TaskRun], by: str) -> Rerun:
    """Compare an entry with a maintainer's runs of the same system.

    Raises:
        UserError: A task was not run, or its scores are others: significantly, and by a point or more.
    """
    _, lines = of_runs(runs)
    missing = sorted(set(verified.tasks) - set(lines))
    if missing:
        raise UserError(f"The re-run lacks {', '.join(missing)}. Run all tasks of the entry.")
    tasks = {}
    for task, result in verified.tasks.items():
        key = answer_key(task)
        again = {line.id: line for line in lines[task]}
        metric, ids = key.main_metric, sorted(key.questions)
        ours = key.scores(again, {})[metric]
        theirs = result.scores[metric]
        difference = paired([theirs[id] for id in ids], [ours[id] for id in ids])
        if difference.p < ALPHA and abs(difference.interval.mean) >= POINT:
            raise UserError(
                f"{task}: {metric} is {result.means[metric]:.3f} by the entry's predictions and "
                f"{sum(ours.values()) / len(ours):.3f} in the re-run (p = {difference.p:.2g}), so there is no record. "
                "Ask the submitter for the exact command."
            )
        answers = verified.submission.predictions[task]
        same = sum(normalise(answers[id].answer) == normalise(again[id].answer) for id in ids) / len(ids)
        tasks[task] = Compared(
            metric=metric, entry=result.means[metric], rerun=sum(ours.values()) / len(ours), same=same
        )
    date = max(run.date for run in runs)
    return Rerun(entry=digest_of(folder), by=by, date=date, package=version("lm-eval-rag"), tasks=tasks)


def read_reruns(board: Path) -> dict[str, Rerun]:
    """Folder -> record, from ``reruns.json`` in the folder of a board's entries; {} without it.

    Raises:
        UserError: The file is malformed.
    """
    return read_records(board / RERUNS, RECORDS, "`lm-eval-rag verify ENTRY --rerun RUN` writes it.")


def add_rerun(folder: Path, record: Rerun) -> Path:
    """Write a record beside the entry's folder, in place of an older one of it; the file."""
    path = folder.parent / RERUNS
    write_records(path, {**read_reruns(folder.parent), folder.name: record})
    return path
