"""What ``crag_demo`` is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout
from lm_eval_rag.tasks.crag.about import DEMO_OPTIONS, SCORES


def about() -> dict[str, TaskAbout]:
    """The task of this folder by name."""
    summary = "41 questions with web pages and a small knowledge graph of an invented world; needs no network."
    return {"crag_demo": TaskAbout(summary, "this project", SCORES, DEMO_OPTIONS)}
