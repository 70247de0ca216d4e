"""What remains noisy in the gold answers of Q, counted."""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl

from lm_eval_rag.tasks.ruleqa.aliases import bare, shared
from lm_eval_rag.tasks.ruleqa.graphs import Graph

NUMBERED = re.compile(r" \(\d+\)$")


def counted(questions: pl.DataFrame, graph: Graph) -> dict[str, int]:
    """Reason -> number of questions for which it holds of a gold answer; all but the last also count good ones.

    Args:
        questions: Q, with ids in ``answers``.
    """
    ambiguous = shared(graph.aliases)
    reasons: dict[str, Callable[[int], bool]] = {
        "have a gold answer with aliases": lambda id: id in graph.aliases,
        "have a gold answer with an alias that another entity has too": lambda id: id in ambiguous,
        "have a gold answer whose name ends with a note in parentheses": lambda id: (
            bare(graph.entities[id]) != graph.entities[id]
        ),
        "have a gold answer that only a number distinguishes": lambda id: bool(NUMBERED.search(graph.entities[id])),
    }
    answers = questions["answers"].to_list()
    counts = {reason: sum(any(map(holds, ids)) for ids in answers) for reason, holds in reasons.items()}
    return {**counts, "have gold answers with noisy names only": sum(graph.noisy.issuperset(ids) for ids in answers)}
