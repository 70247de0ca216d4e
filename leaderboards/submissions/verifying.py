"""Verification: every score anew, from the predictions alone, with reasons that tell the submitter how to mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey, answer_key, own_tasks, scorer_hash
from lm_eval_rag.leaderboards.submissions.form import Prediction
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, Submission, read_submission
from lm_eval_rag.leaderboards.submissions.suspicions import suspicions

NAMED = 5  # so many ids stand in a reason


@dataclass(frozen=True, slots=True)
class TaskScores:
    """One task of a submission, scored anew.

    Args:
        scores: Metric -> question id -> score.
        cost: Means of a question: ``calls``, ``tokens``, ``seconds``, ``cost``; only those of all questions.
        flags: What a maintainer should look at.
    """

    task: str
    data: str
    scores: Mapping[str, Mapping[str, float]]
    cost: Mapping[str, float]
    flags: tuple[str, ...] = ()

    @property
    def means(self) -> dict[str, float]:
        """Metric -> mean."""
        return {metric: sum(values.values()) / len(values) for metric, values in self.scores.items()}


@dataclass(frozen=True, slots=True)
class Verified:
    """A submission that is accepted."""

    submission: Submission
    tasks: Mapping[str, TaskScores]

    def verdict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "accepted": True,
            "tier": "re-scored",
            "scorer": scorer_hash(),
            "tasks": {
                name: {
                    "data": one.data,
                    "questions": len(self.submission.predictions[name]),
                    "scores": one.means,
                    "flags": list(one.flags),
                }
                for name, one in self.tasks.items()
            },
        }


def verify(folder: Path) -> Verified:
    """Read a submission and score it; errors are those of reading and of :func:`scored`."""
    return scored(read_submission(folder))


def scored(submission: Submission) -> Verified:
    """Score a submission.

    Raises:
        RefusedError: Its questions are not those of its tasks, or it names passages that there are not.
    """
    for task in submission.card.tasks:
        if task not in own_tasks():
            raise RefusedError(f"submission.json: there is no task {task!r}. `lm-eval-rag describe` lists all tasks.")
    return Verified(submission, {task: _task(answer_key(task), submission) for task in submission.card.tasks})


def _task(key: AnswerKey, submission: Submission) -> TaskScores:
    """Check the questions of one task and score them."""
    declared, predictions = submission.card.tasks[key.name], submission.predictions[key.name]
    if declared.data != key.data:
        raise RefusedError(
            f"{key.name}: the predictions are for data {declared.data}, this board has {key.data} (version "
            f"{key.version}). Run the task again with the board's version of lm-eval-rag."
        )
    _same_questions(key, predictions)
    passages = key.passages(predictions)
    strangers = key.strangers(predictions, passages)
    if strangers:
        raise RefusedError(
            f"{key.name}: {len(strangers)} questions name passages that the task's corpus does not hold "
            f"({_some(strangers)}). Give ids of the corpus (`lm-eval-rag export {key.name}`), or null for a corpus of "
            "your own."
        )
    scores = key.scores(predictions, passages)
    return TaskScores(key.name, key.data, scores, _cost(predictions), tuple(suspicions(key, predictions, scores)))


def _same_questions(key: AnswerKey, predictions: Mapping[str, Prediction]) -> None:
    missing = [id for id in key.questions if id not in predictions]
    foreign = [id for id in predictions if id not in key.questions]
    for ids, what in ((missing, "lacks"), (foreign, "has unknown")):
        if ids:
            raise RefusedError(
                f"predictions/{key.name}.jsonl {what} {len(ids)} questions ({_some(ids)}). One line for each of the "
                f"{len(key.questions)} questions of {key.name}; without an answer, abstain."
            )


def _cost(predictions: Mapping[str, Prediction]) -> dict[str, float]:
    """What a question costs, as declared; nothing that only some questions declare."""
    sums: dict[str, Sequence[float | None]] = {
        "calls": [one.calls for one in predictions.values()],
        "tokens": [
            None if one.prompt_tokens is None or one.completion_tokens is None
            else one.prompt_tokens + one.completion_tokens
            for one in predictions.values()
        ],
        "seconds": [one.seconds for one in predictions.values()],
        "cost": [one.cost for one in predictions.values()],
    }  # fmt: skip
    return {
        name: sum(value for value in values if value is not None) / len(values)
        for name, values in sums.items()
        if values and None not in values
    }


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(id[:60]) for id in ids[:NAMED])
    return shown + (", ..." if len(ids) > NAMED else "")
