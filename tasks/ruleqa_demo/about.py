"""What ``ruleqa_demo`` is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout


def about() -> dict[str, TaskAbout]:
    """The task of this folder by name."""
    summary = "200 questions about an invented world, with rules of known confidence; needs no network."
    return {"ruleqa_demo": TaskAbout(summary, "this project", ("em", "em_contains", "token_f1", "recall@10"))}
