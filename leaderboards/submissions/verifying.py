"""Verification: every score anew, from the predictions alone, with reasons that tell the submitter how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_rag.leaderboards.submissions.form import Budget, Prediction
from lm_eval_rag.leaderboards.submissions.memorised import memorised
from lm_eval_rag.leaderboards.submissions.question_sheet import QuestionSheet, own_tasks, question_sheet
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, Submission, read_submission

if TYPE_CHECKING:
    from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey
    from lm_eval_rag.leaderboards.submissions.board_judge import BoardJudge

FRESH = "_fresh"  # suffix of the task with invented names
FOREIGN = "The corpus is not the task's: the entry is shown apart, and its recall is not computed."
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
        from lm_eval_rag.leaderboards.submissions.answer_key import scorer_hash

        return {
            "accepted": True,
            "tier": "re-scored",
            "scorer": scorer_hash(),
            "tasks": {
                name: {
                    "data": one.data,
                    "questions": len(self.submission.predictions[name]),
                    **self._corpus(name),
                    "scores": one.means,
                    "flags": list(one.flags),
                }
                for name, one in self.tasks.items()
            },
        }

    def is_foreign(self, task: str) -> bool:
        """Whether a task was answered over a corpus that is not the task's: shown apart, and without recall."""
        return question_sheet(task).is_foreign(self.submission.card.tasks[task].corpus)

    def _corpus(self, task: str) -> dict[str, Any]:
        """What the verdict says of the corpus; nothing if it is the task's."""
        hash = self.submission.card.tasks[task].corpus
        return {"corpus": hash, "note": FOREIGN} if self.is_foreign(task) else {}


def verify(folder: Path, judge: BoardJudge | None = None) -> Verified:
    """Read a submission and score it; errors are those of reading and of :func:`scored`."""
    return scored(read_submission(folder), judge)


def scored(submission: Submission, judge: BoardJudge | None = None) -> Verified:
    """Score a submission.

    Args:
        judge: The board's; without its verdicts on all answers of a task, the task has no Acc-LM.

    Raises:
        RefusedError: Its questions are not those of its tasks, or it names passages that there are not.
    """
    for task in submission.card.tasks:
        if task not in own_tasks():
            raise RefusedError(f"submission.json: there is no task {task!r}. `lm-eval-rag describe` lists all tasks.")
    sheets = [question_sheet(task) for task in submission.card.tasks]
    for check in (_same_data, _known_passages):  # passages last: corpora are opened for them
        for sheet in sheets:
            check(sheet, submission)
    from lm_eval_rag.leaderboards.submissions.answer_key import answer_key

    tasks = {task: _task(answer_key(task), submission, judge) for task in submission.card.tasks}
    return Verified(submission, {task: _beside_fresh(one, tasks.get(task + FRESH)) for task, one in tasks.items()})


def _beside_fresh(original: TaskScores, fresh: TaskScores | None) -> TaskScores:
    """The task, with a flag if its scores are far above those of its twin with invented names."""
    if fresh is None:
        return original
    from lm_eval_rag.leaderboards.submissions.answer_key import answer_key

    twins = answer_key(fresh.task).questions
    same = {id for id, doc in answer_key(original.task).questions.items() if _asks(doc) == _asks(twins.get(id, {}))}
    paired = {metric: {id: value for id, value in one.items() if id in same} for metric, one in original.scores.items()}
    flag = memorised(paired, fresh.scores)
    return replace(original, flags=(*original.flags, flag)) if flag else original


def _asks(doc: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a question and its twin have in common, whatever the names: ids alone may differ between builds."""
    return doc.get("relation"), doc.get("time")


def _same_data(sheet: QuestionSheet, submission: Submission) -> None:
    """Refuse other data, other questions, and a budget that is not that of the lines."""
    name = sheet.name
    declared, predictions = submission.card.tasks[name], submission.predictions[name]
    if declared.data != sheet.data:
        raise RefusedError(
            f"{name}: the predictions are for data {declared.data}, this board has {sheet.data} (version "
            f"{sheet.version}). Run the task again with the board's version of lm-eval-rag."
        )
    _same_questions(sheet, predictions)
    if declared.budget is not None:
        _same_budget(name, declared.budget, budget_of(predictions.values()))


def _known_passages(sheet: QuestionSheet, submission: Submission) -> None:
    """Refuse ids of passages that the task's corpus does not hold."""
    name = sheet.name
    foreign = sheet.is_foreign(submission.card.tasks[name].corpus)
    strangers = [] if foreign else sheet.strangers(submission.predictions[name])
    if strangers:
        raise RefusedError(
            f"{name}: {len(strangers)} questions name passages that the task's corpus does not hold "
            f"({_some(strangers)}). Give ids of the corpus (`lm-eval-rag export {name}`), or name a corpus of your own "
            f'in submission.json (tasks, {name}, "corpus"; --corpus of `lm-eval-rag submit`).'
        )


def _task(key: AnswerKey, submission: Submission, judge: BoardJudge | None) -> TaskScores:
    """Score one task."""
    from lm_eval_rag.leaderboards.submissions.suspicions import suspicions

    predictions = submission.predictions[key.name]
    foreign = key.sheet.is_foreign(submission.card.tasks[key.name].corpus)
    scores = key.scores(predictions, {} if foreign else key.passages(predictions))
    if judge is not None and (verdicts := judge.acc_lm(key, predictions)):
        scores["acc_lm"] = verdicts
    return TaskScores(key.name, key.data, scores, _cost(predictions), tuple(suspicions(key, predictions, scores)))


def budget_of(predictions: Iterable[Prediction]) -> Budget:
    """The totals of lines; None where one of them does not say."""
    lines = list(predictions)
    columns = {name: [getattr(line, name) for line in lines] for name in Budget.model_fields}
    return Budget(**{name: None if None in values else sum(values) for name, values in columns.items()})


def _same_budget(task: str, declared: Budget, lines: Budget) -> None:
    for name in Budget.model_fields:
        said, summed = getattr(declared, name), getattr(lines, name)
        if said is not None and (summed is None or not isclose(said, summed, rel_tol=1e-6)):
            raise RefusedError(
                f"submission.json, {task}, budget: {name} is {said}, and the lines of predictions have {summed}. Leave "
                "the budget out, or pack the submission anew."
            )


def _same_questions(sheet: QuestionSheet, predictions: Mapping[str, Prediction]) -> None:
    missing = [id for id in sheet.corpora if id not in predictions]
    foreign = [id for id in predictions if id not in sheet.corpora]
    for ids, what in ((missing, "lacks"), (foreign, "has unknown")):
        if ids:
            raise RefusedError(
                f"predictions/{sheet.name}.jsonl {what} {len(ids)} questions ({_some(ids)}). One line for each of the "
                f"{len(sheet.corpora)} questions of {sheet.name}; without an answer, abstain."
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
