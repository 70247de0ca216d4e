"""What pages have beside descriptions: where RESULTS.md has numbers of a name, and a question of an embedded task."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
EMBEDDED = ("ruleqa_demo", "crag_demo", "reasoning_demo")  # their data are ours; those of other tasks have terms


def measured(name: str, root: Path) -> str:
    """Links to the sections of RESULTS.md that name a method or task; "" if none does."""
    text = (root / "RESULTS.md").read_text(encoding="utf-8")
    titles = list(HEADING.finditer(text))
    ends = [*(title.start() for title in titles[1:]), len(text)]
    sections = ((title[1], text[title.end() : end]) for title, end in zip(titles, ends, strict=True))
    named = [title for title, body in sections if f"`{name}`" in title + body]
    links = ", ".join(f"[{title.replace('`', '')}](../results.md#{anchor(title)})" for title in named)
    return f"**Measured:** {links}" if links else ""


def anchor(heading: str) -> str:
    """The anchor that the site gives a heading."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def example(name: str) -> str:
    """The first question of an embedded task with its gold answers; "" for others."""
    if name not in EMBEDDED:
        return ""
    import lm_eval_rag
    from lm_eval_rag.harness.plugin.retrieve_cli import load_tasks

    lm_eval_rag.register()
    doc = load_tasks([name])[name].eval_docs[0]
    shown = {key: doc[key] for key in ("id", "query", "time", "answers") if doc.get(key)}
    return f"## A question\n\n```json\n{json.dumps(shown, indent=2, ensure_ascii=False)}\n```"
