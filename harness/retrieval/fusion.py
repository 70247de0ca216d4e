"""Ways to make one ranked list of several. A document's first occurrence is the one that is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TypeVar

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.core.types import Passage

K = TypeVar("K", str, int)


def round_robin(lists: Iterable[Sequence[Passage]]) -> tuple[Passage, ...]:
    """The union of lists (RuleRAG, equation 1): the first of each list in turn, then the second of each, and so on.

    The first k of it are the fair share of k documents over all lists; the whole is the pool.
    """
    kept: dict[str, Passage] = {}
    for passage in chain.from_iterable(zip_longest(*lists)):
        if passage is not None:
            kept.setdefault(passage.id, passage)
    return tuple(kept.values())


def reciprocal_rank(lists: Iterable[Sequence[Passage]], constant: int = 60) -> tuple[Passage, ...]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009): by the sum of 1 / (constant + rank).

    Args:
        lists: Ranked lists, best first; ranks count from 1.
        constant: 60 in the paper; 0 or more.

    Returns:
        All documents, best first, ties by id, each with its sum as score, in (0, len(lists) / (constant + 1)].
    """
    ranked = [list({passage.id: passage for passage in one}.values()) for one in lists]
    passages: dict[str, Passage] = {}
    for passage in chain.from_iterable(ranked):
        passages.setdefault(passage.id, passage)
    sums = rank_sums([[passage.id for passage in one] for one in ranked], constant)
    return tuple(replace(passages[id], score=total) for id, total in sums)


def rank_sums(lists: Iterable[Sequence[K]], constant: int = 60) -> list[tuple[K, float]]:
    """The sums of reciprocal rank fusion over ids or rows, each at most once in a list; best first, ties by id or row.

    Raises:
        UserError: The constant is below 0.
    """
    at_least("constant", constant, 0)
    sums: dict[K, float] = {}
    for ranked in lists:
        for rank, key in enumerate(ranked, 1):
            sums[key] = sums.get(key, 0.0) + 1 / (constant + rank)
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))
