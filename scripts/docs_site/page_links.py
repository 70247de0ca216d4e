"""Links between documents of the project, as links between pages of the site."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

ROOT_PAGES = {  # document of the project's root -> page
    "README.md": "index.md",
    "RESULTS.md": "results.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
FOLDER_PAGES = {  # folder or file of the project -> the page that describes it
    "methods": "methods/index.md",
    "tasks": "tasks/index.md",
    "tasks/ruleqa": "tasks/index.md",
    "harness/retrieval": "retrievers.md",
    "harness/scoring": "metrics.md",
}
LINK = re.compile(r"(!?)\[([^\]\n]+)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```\n?)", re.MULTILINE | re.DOTALL)


def relinked(markdown: str, page: str, root: Path) -> str:
    """The text of a page with its local links turned; code blocks stay.

    Args:
        page: Path of the page below ``docs/``, such as ``methods/ircot.md``.
        root: The project's folder.
    """
    origin = next((file for file, one in ROOT_PAGES.items() if one == page), f"docs/{page}")
    parts = FENCE.split(markdown)
    return "".join(
        part if part.startswith("```") else LINK.sub(lambda m: _link(m, origin, page, root), part) for part in parts
    )


def _link(match: re.Match[str], origin: str, page: str, root: Path) -> str:
    image, text, (path, mark, anchor) = match[1], match[2], match[3].partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    goal = target_page(target, root)
    if goal is None and image:
        return match[0]
    if goal is None:
        return text if target in text else f"{text} (`{target}`)"
    return f"{image}[{text}]({os.path.relpath(goal, posixpath.dirname(page) or '.')}{mark}{anchor})"


def target_page(target: str, root: Path) -> str | None:
    """The page that shows a file of the project; None if none does."""
    if target in FOLDER_PAGES:
        return FOLDER_PAGES[target]
    if target in ROOT_PAGES:
        return ROOT_PAGES[target]
    if target.startswith("docs/"):  # a page that lies there, or one that is generated
        return target.removeprefix("docs/")
    return None
