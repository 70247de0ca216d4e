"""What ``reasoning_demo`` is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout


def about() -> dict[str, TaskAbout]:
    """The task of this folder by name."""
    summary = "400 questions of several hops and claims about an invented world, with known chains of facts."
    scores = ("em", "hotpot_em", "hotpot_f1", "fever_label", "evidence_recall@10")
    return {"reasoning_demo": TaskAbout(summary, "this project", scores)}
