"""The card of a built task: its content, departures from upstream, licences and terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEPARTURES = (
    "Pages are stored in the search's order; each distinct HTML once, cut after 4 million characters.",
    "The alternatives of an answer are answers of equal standing; equal ones stand once. Answers that are numbers are "
    "written as text.",
    "The time of a question is in ISO 8601 with its offset; PT is Pacific time with daylight saving.",
    "Questions without interaction_id are numbered; one whose id comes again gets a suffix.",
)


def text(meta: Mapping[str, Any]) -> str:
    """The dataset card in Markdown, from the content of ``meta.json``."""
    counts = meta["counts"]
    kg = f"the knowledge graph `{meta['kg']}`" if meta["kg"] else "no knowledge graph"
    files = [
        (name, *(about.get(key, "") for key in ("licence", "terms", "sha256")))
        for name, about in meta["sources"].items()
    ]
    slices = [(name, value, count) for name, values in meta["slices"].items() for value, count in values.items()]
    parts = [
        f"# {meta['task']}: questions with web pages",
        f"CRAG (arXiv:2406.04744). {counts['questions']} questions with {counts['pages']} pages, of which "
        f"{counts['distinct_pages']} are distinct; at most {meta['shown']} of a question are shown. Beside them: {kg}.",
        "## Slices\n\n" + _table(("key", "value", "questions"), slices),
        "## Notes on reading\n\n" + ("\n".join(f"- {note}: {n}" for note, n in meta["notes"].items()) or "None."),
        "## Departures\n\n" + "\n".join(f"- {line}" for line in DEPARTURES),
        "## Sources, licences and terms\n\nThe data keep the terms of their sources.\n\n"
        + _table(("file", "licence", "terms", "sha256"), files),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
