"""What ``reasoning_demo`` is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout


def about() -> dict[str, TaskAbout]:
    """The task of this folder by name."""
    summary = "400 questions of several hops and claims about an invented world, with known chains of facts."
    return {"reasoning_demo": TaskAbout(summary, "this project")}
