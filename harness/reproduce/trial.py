"""A cheap trial of a table: its training steps end after a few steps of the optimizer.

A step of a trial has another option, ``max_steps``, so its checkpoint has a key of its own, and so have the runs that
take it: nothing of a trial passes for the whole training.
"""

from __future__ import annotations

from dataclasses import replace

from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_spec import Row, Table


def trial_of(table: Table, max_steps: int) -> Table:
    """The table with training steps that end after ``max_steps`` steps; rows without training stay as they are."""
    return replace(table, rows=tuple(_row(row, max_steps) for row in table.rows), max_steps=max_steps)


def _row(row: Row, max_steps: int) -> Row:
    if not any(job.steps for job in jobs(row)):
        return row
    own = {name: step.get("max_steps") for name, step in row.steps.items()}
    shorter = {name: value for name, value in own.items() if isinstance(value, int) and value < max_steps}
    steps = {name: {**step, "max_steps": shorter.get(name, max_steps)} for name, step in row.steps.items()}
    why = f"its training ended after {max_steps} steps, as a trial"
    return replace(row, steps=steps, differs=f"{row.differs}; {why}" if row.differs else why)
