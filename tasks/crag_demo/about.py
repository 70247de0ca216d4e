"""What ``crag_demo`` is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout
from lm_eval_rag.tasks.crag.about import DEMO_OPTIONS, GOLD, SLICES


def about() -> dict[str, TaskAbout]:
    """The task of this folder by name."""
    summary = "201 questions with web pages and a small knowledge graph of an invented world; needs no network."
    pages = "The web pages of each question, cut into passages, and a mock API over the graph; all written for this."
    facts = {
        "questions": "201: 25 of each type (simple_w_condition 26), 40 of each domain (music 41).",
        "corpora": pages,
        "slices": SLICES,
        "gold": GOLD,
    }
    return {"crag_demo": TaskAbout(summary, "this project", DEMO_OPTIONS, facts=facts)}
