"""What ``reasoning_demo`` is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout


def about() -> dict[str, TaskAbout]:
    """The task of this folder by name."""
    summary = "400 questions of several hops and claims about an invented world, with known chains of facts."
    facts = {
        "questions": "400.",
        "corpora": "One page for each name of a world that a seeded generator makes.",
        "slices": "type: the shape of the question, such as comparison_which or a claim.",
        "gold": "The answer as the chain of facts gives it; `gold` are the pages, `facts` the sentences and "
        "`triples` the facts that it needs.",
    }
    return {"reasoning_demo": TaskAbout(summary, "this project", facts=facts, model="generator=tiny_steps")}
