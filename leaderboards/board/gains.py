"""With which ``standard_rag`` of the board an entry is compared."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.leaderboards.board.entries import Entry

BASELINE = "standard_rag"
EQUAL = 0.1  # relative difference of tokens a question up to which a budget is equal


def standard_rag_of(entry: Entry, own: Sequence[Entry], task: str) -> dict[str, str]:
    """What to call it -> the slug of the ``standard_rag`` with the entry's generator, if there is one.

    Of several, the one whose tokens a question are nearest; its name says whether the budget is equal.
    """
    others = [
        other
        for other in own
        if other.card.method == BASELINE
        and other.slug != entry.slug
        and (other.card.generator, other.card.revision) == (entry.card.generator, entry.card.revision)
    ]
    if not others:
        return {}
    tokens = entry.tasks[task].cost.get("tokens")

    def ratio(other: Entry) -> float:
        """Tokens of the entry over those of the other; infinite if one of them is not declared."""
        theirs = other.tasks[task].cost.get("tokens")
        return tokens / theirs if tokens and theirs else float("inf")

    nearest = min(others, key=lambda other: (max(ratio(other), 1 / (ratio(other) or 1)), other.slug))
    return {f"{BASELINE}, same generator{_budget(ratio(nearest))}": nearest.slug}


def _budget(ratio: float) -> str:
    if ratio == float("inf"):
        return ""
    return ", equal budget" if abs(ratio - 1) <= EQUAL else f", {ratio:.2g} times its tokens"
