"""What the page of a task has beside its description: its card, and questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lm_eval_rag.describe.description import Description
from lm_eval_rag.describe.tasks import about_tasks
from lm_eval_rag.harness.common.card_table import card_table

EMBEDDED = ("ruleqa_demo", "crag_demo", "reasoning_demo")  # their data are ours; those of other tasks have terms
KINDS = ("slice", "question_type", "type")  # columns by which examples differ
SHOWN = 3
OURS = "Questions of the task, generated when this page was built, with their gold answers."
MADE_UP = "The form of a question, with made-up text: the data have terms, so none of them is shown."


def card(about: Description) -> str:
    """The facts of a task as a table."""
    facts = [("source", ", ".join(about.sources)), *about.notes]
    return f"## Card\n\n{card_table(('', ''), [(title, ' '.join(text.split())) for title, text in facts])}"


def examples(name: str) -> str:
    """Questions of a task, or their form where they may not be shown; "" for a group."""
    if name in EMBEDDED:
        import lm_eval_rag
        from lm_eval_rag.harness.plugin.retrieve_cli import load_tasks

        lm_eval_rag.register()
        return _shown("Examples", OURS, different(load_tasks([name])[name].eval_docs))
    form = about_tasks()[name].form
    return _shown("A question, made up", MADE_UP, [form]) if form else ""


def different(docs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first question of each kind, a few of them."""
    kinds: dict[Any, Mapping[str, Any]] = {}
    for doc in docs:
        kinds.setdefault(next((doc[key] for key in KINDS if doc.get(key)), None), doc)
    return list(kinds.values())[:SHOWN]


def _shown(title: str, text: str, docs: Sequence[Mapping[str, Any]]) -> str:
    blocks = (f"```json\n{json.dumps(dict(doc), indent=2, ensure_ascii=False)}\n```" for doc in docs)
    return "\n\n".join([f"## {title}", text, *blocks])
