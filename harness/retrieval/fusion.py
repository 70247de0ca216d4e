"""Merge several ranked lists into one. Of a document that is in several lists, the first occurrence is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TypeVar

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.core.types import Passage

K = TypeVar("K", str, int)


def round_robin(lists: Iterable[Sequence[Passage]]) -> tuple[Passage, ...]:
    """The union of lists (RuleRAG, equation 1): the first document of each list, then the second of each, and so on.

    Its first k documents divide a budget of k equally among the lists.
    """
    passages: dict[str, Passage] = {}
    for passage in chain.from_iterable(zip_longest(*lists)):
        if passage is not None:
            passages.setdefault(passage.id, passage)
    return tuple(passages.values())


def reciprocal_rank(lists: Iterable[Sequence[Passage]], constant: int = 60) -> tuple[Passage, ...]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009): by the sum of 1 / (constant + rank).

    Args:
        lists: Ranked lists, best first; ranks count from 1.
        constant: 60 in the paper; 0 or more.

    Returns:
        All documents, best first, ties by id. The score is the sum, in (0, len(lists) / (constant + 1)].
    """
    rankings = [list({passage.id: passage for passage in ranking}.values()) for ranking in lists]
    passages: dict[str, Passage] = {}
    for passage in chain.from_iterable(rankings):
        passages.setdefault(passage.id, passage)
    sums = rank_sums([[passage.id for passage in ranking] for ranking in rankings], constant)
    return tuple(replace(passages[id], score=total) for id, total in sums)


def rank_sums(lists: Iterable[Sequence[K]], constant: int = 60) -> list[tuple[K, float]]:
    """Reciprocal rank fusion of lists of ids or rows, without repeats: (id or row, sum), best first, ties by id or row.

    Raises:
        UserError: The constant is below 0.
    """
    at_least("constant", constant, 0)
    sums: dict[K, float] = {}
    for ranking in lists:
        for rank, key in enumerate(ranking, 1):
            sums[key] = sums.get(key, 0.0) + 1 / (constant + rank)
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))
