"""The references that the model sees: facts, calculations, text and tables, each a passage that begins with its kind.

The most important come first, because a prompt that is too long loses its last references. The paper has one heading
for each kind, and text first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.web.markdown_tables import shorten


@dataclass(frozen=True, slots=True)
class References:
    """All references of a question.

    Args:
        chunks: Texts of web pages, best first.
        tables: In Markdown.
        facts: Of the knowledge graph.
        calculations: ``expression = value``.
        memory: The model's answer without references, or "".
    """

    chunks: tuple[Passage, ...] = ()
    tables: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    calculations: tuple[str, ...] = ()
    memory: str = ""

    def passages(self) -> tuple[Passage, ...]:
        """All of them for a prompt, the most important first."""
        return (
            *_labelled("Fact of a knowledge graph", self.facts),
            *_labelled("Calculation", self.calculations),
            *_labelled("Answer from memory", [self.memory] if self.memory else []),
            *_labelled("Text", (chunk.text for chunk in self.chunks)),
            *_labelled("Table", self.tables),
        )


def within(texts: Iterable[str], limit: int) -> tuple[str, ...]:
    """The texts that fit into ``limit`` characters; the last is cut after a whole line, or left out if none fits."""
    kept: list[str] = []
    for text in texts:
        part = shorten([text], limit) if limit > 0 else ""
        if not part or (kept and part != text and "\n" not in part):
            break
        kept.append(part)
        limit -= len(part)
    return tuple(kept)


def _labelled(label: str, texts: Iterable[str]) -> list[Passage]:
    return [Passage(f"{label} {i}", f"{label}: {text}") for i, text in enumerate(texts, start=1)]
