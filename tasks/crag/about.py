"""What each CRAG task is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout, TaskOption
from lm_eval_rag.tasks.crag.build import SPECS, Spec, manifest
from lm_eval_rag.tasks.crag.card import DEPARTURES

PAPER = "CRAG (arXiv:2406.04744)"
SCORES = ("crag_score", "crag_correct", "crag_missing", "crag_hallucination")
DEMO_OPTIONS = {
    "split": TaskOption("0 or 1", "", "0 takes the validation questions, 1 those of the public test; by default both."),
}
OPTIONS = {
    "release": TaskOption("v4 or v5", "v4", "The release of the questions; v4 is that of the KDD Cup 2024."),
    **DEMO_OPTIONS,
    "data_files": TaskOption(
        "a path or a pattern", "", "Your own files in CRAG's format, in place of the official ones."
    ),
}


def about() -> dict[str, TaskAbout]:
    """The tasks of this folder by name, group included."""
    group = TaskAbout(f"The three tasks: {', '.join(SPECS)}.", PAPER, SCORES, OPTIONS, DEPARTURES)
    return {**{name: _task(spec) for name, spec in SPECS.items()}, "crag": group}


def _task(spec: Spec) -> TaskAbout:
    upstream = manifest()
    graph = " and a mock API over knowledge graphs" if spec.graph else ""
    summary = f"2,706 questions of eight types in five domains, with {spec.shown} web pages each{graph}."
    sources = tuple(upstream[path] for path in spec.sources("v4"))
    return TaskAbout(summary, PAPER, SCORES, OPTIONS, DEPARTURES, sources)
