"""What each CRAG task is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout, TaskOption
from lm_eval_rag.tasks.crag.build import SPECS, Spec, manifest
from lm_eval_rag.tasks.crag.card import DEPARTURES

PAPER = "CRAG (arXiv:2406.04744)"
DEMO_OPTIONS = {
    "split": TaskOption("0 or 1", "", "0 takes the validation questions, 1 those of the public test; by default both."),
}
SLICES = (
    "domain (finance, sports, music, movie, open), question_type (eight), static_or_dynamic, popularity (head, torso, "
    "tail), split (0 validation, 1 public test)."
)
GOLD = (
    "The answer and its alternatives, as the release has them. A judge decides which answers mean the same; a question "
    'with a false premise has the gold answer "invalid question".'
)
FORM = {
    "id": "0a1b2c3d-0000-0000-0000-000000000000",
    "query": "who directed the film The Lantern of Vale?",
    "time": "2024-02-28T17:00:00-08:00",
    "answers": ["Ada Moss"],
    "domain": "movie",
    "question_type": "simple",
    "static_or_dynamic": "static",
    "popularity": "tail",
    "split": 0,
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
    facts = {"slices": SLICES, "gold": GOLD}
    group = TaskAbout(f"The three tasks: {', '.join(SPECS)}.", PAPER, OPTIONS, DEPARTURES, facts=facts)
    return {**{name: _task(name, spec) for name, spec in SPECS.items()}, "crag": group}


def _task(name: str, spec: Spec) -> TaskAbout:
    upstream = manifest()
    graph = " and a mock API over knowledge graphs" if spec.graph else ""
    summary = f"2,706 questions of eight types in five domains, with {spec.shown} web pages each{graph}."
    sources = tuple(upstream[path] for path in spec.sources("v4"))
    pages = f"The {spec.shown} pages of each question in search order, cut into passages{graph}."
    facts = {"questions": "2,706 in release v4.", "corpora": pages, "slices": SLICES, "gold": GOLD}
    form = {**FORM, "corpus": f"{name}/0123456789ab#{FORM['id']}"}
    return TaskAbout(summary, PAPER, OPTIONS, DEPARTURES, sources, facts, form)
