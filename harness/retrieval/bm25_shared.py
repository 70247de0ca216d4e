"""Groups of queries that end alike, as questions do to which the same rule was added: what do they have in common?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

ALIKE = 0.5  # the share of its tokens, from the end on, that the first query of a group has in common with each other


@dataclass(frozen=True, slots=True)
class Group:
    """Queries with their common tokens.

    Args:
        queries: Their places in the batch.
        common: Tokens that stand in each of them, as often as in each; none if the group is one query.
        others: The other tokens of each.
    """

    queries: list[int]
    common: list[int]
    others: list[list[int]]


def shared_tokens(queries: Sequence[Sequence[int]]) -> list[Group]:
    """Every query in one group.

    Args:
        queries: The numbers of each query's tokens, in order.
    """
    reverse = [list(reversed(query)) for query in queries]
    groups: list[list[int]] = []
    for i in sorted(range(len(queries)), key=reverse.__getitem__):
        if groups and _end_alike(reverse[groups[-1][0]], reverse[i]):
            groups[-1].append(i)
        else:
            groups.append([i])
    return [_group(group, [Counter(queries[i]) for i in group]) for group in groups]


def _end_alike(first: Sequence[int], query: Sequence[int]) -> bool:
    least = int(ALIKE * len(first)) + 1
    return len(first) >= least and first[:least] == query[:least]


def _group(places: list[int], counts: Sequence[Counter[int]]) -> Group:
    if len(places) == 1:
        return Group(places, [], [list(counts[0].elements())])
    common = counts[0].copy()
    for count in counts[1:]:
        common &= count
    return Group(places, list(common.elements()), [list((count - common).elements()) for count in counts])
