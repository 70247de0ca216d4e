"""What ``ruleqa_demo`` is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout
from lm_eval_rag.tasks.ruleqa.about import GOLD, SLICES


def about() -> dict[str, TaskAbout]:
    """The task of this folder by name."""
    summary = "200 questions about an invented world, with rules of known confidence; needs no network."
    facts = {
        "questions": "200.",
        "corpora": "One passage for each fact of a world that a seeded generator makes, and rules mined from them.",
        "slices": SLICES,
        "gold": GOLD,
    }
    return {"ruleqa_demo": TaskAbout(summary, "this project", facts=facts)}
