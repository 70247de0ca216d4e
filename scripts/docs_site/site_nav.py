"""The navigation of the site: hand-written pages in their order, then a page for each method and task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page_links import ROOT_PAGES

from lm_eval_rag.describe.models import model_names
from lm_eval_rag.describe.tasks import task_names

PAGES = {  # title -> pages in docs/, or pages of the project's root; those that are not there are left out
    "Start": {"Overview": "index.md", "Running": "running.md", "Extras": "extras.md"},
    "Tutorials": {
        "Your system": "your_system.md",
        "Adapters": "adapters.md",
        "Your documents": "your_documents.md",
        "Your model": "your_model.md",
        "Fine-tuning": "fine_tuning.md",
        "Publishing": "publishing.md",
        "Your table": "your_table.md",
        "Viewing a run": "view.md",
        "Reports": "report.md",
    },
    "Topics": {
        "Retrieval": "retrieval.md",
        "Scale": "scale.md",
        "Methods of several steps": "reasoning.md",
        "CRAG": "crag.md",
        "Wikipedia": "tasks_wikipedia.md",
        "Results": "results.md",
        "Leaderboard": "leaderboard.md",
    },
    "Project": {
        "Design": "design.md",
        "Contributing": "contributing.md",
        "Changes": "changelog.md",
        "Security": "security.md",
    },
}
OTHERS = "Further pages"  # pages in docs/ that no list above names
GENERATED = {"Scores": "metrics.md", "Retrievers": "retrievers.md", "Errors": "errors.md", "Python": "api.md"}


def nav(root: Path) -> list[dict[str, Any]]:
    """As mkdocs takes it."""
    there = {path.name for path in (root / "docs").glob("*.md")}
    there |= {page for file, page in ROOT_PAGES.items() if (root / file).is_file()}
    listed = {page for pages in PAGES.values() for page in pages.values()}
    parts = {title: [{name: page} for name, page in pages.items() if page in there] for title, pages in PAGES.items()}
    if others := sorted(there - listed):
        parts[OTHERS] = [{page.removesuffix(".md").replace("_", " ").capitalize(): page} for page in others]
    project = parts.pop("Project")
    methods = [{"All methods": "methods/index.md"}, *({name: f"methods/{name}.md"} for name in model_names())]
    sets = [{"All tasks": "tasks/index.md"}, *({name: f"tasks/{name}.md"} for name in sorted(task_names()))]
    reference = [{"Methods": methods}, {"Tasks": sets}, *({name: page} for name, page in GENERATED.items())]
    return [*({title: pages} for title, pages in parts.items()), {"Reference": reference}, {"Project": project}]
