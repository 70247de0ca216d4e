"""The card of a built task: its content, departures from upstream, licences and terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_rag.harness.common.card_table import card_table

DEPARTURES = (
    "Pages are in search order. Each distinct HTML is stored once and truncated after 4 million characters.",
    "Alternative answers are gold answers like the first one; duplicates are removed. Numbers are converted to text.",
    "The time of a question is in ISO 8601 with UTC offset; PT is Pacific time with daylight saving time.",
    "Questions without interaction_id are numbered; repeated ids get a suffix.",
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
        f"{counts['distinct_pages']} are distinct; at most {meta['shown']} pages per question are used. Also: {kg}.",
        "## Slices\n\n" + card_table(("key", "value", "questions"), slices),
        "## Notes from reading\n\n" + ("\n".join(f"- {note}: {n}" for note, n in meta["notes"].items()) or "None."),
        "## Departures\n\n" + "\n".join(f"- {line}" for line in DEPARTURES),
        "## Sources, licences and terms\n\nThe data are subject to the terms of their sources.\n\n"
        + card_table(("file", "licence", "terms", "sha256"), files),
    ]
    return "\n\n".join(parts) + "\n"
