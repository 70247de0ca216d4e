"""A report on some of the questions: those whose column has one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.report.run_files import TaskRun


def only_where(runs: Sequence[TaskRun], condition: str) -> list[TaskRun]:
    """The runs with the questions of which a column has a value; a task that has no such question is left out.

    Args:
        condition: ``COLUMN=VALUE``, such as ``slice=rule_required``.

    Raises:
        UserError: ``condition`` has no ``=``, no question has the column, or none has the value.
    """
    column, equals, value = condition.partition("=")
    docs = [sample["doc"] for run in runs for sample in run.questions.values()]
    if not equals:
        raise UserError(f"--where {condition} is not allowed: give COLUMN=VALUE, such as slice=rule_required.")
    values = {str(doc[column]) for doc in docs if doc.get(column) is not None}
    if not values:
        raise unknown("column of the questions", column, {name for doc in docs for name in doc if name[:1] != "_"})
    if value not in values:
        raise unknown(f"value of {column}", value, values)
    parts = (replace(run, samples=tuple(s for s in run.samples if str(s["doc"].get(column)) == value)) for run in runs)
    return [part for part in parts if part.samples]
