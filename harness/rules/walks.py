"""A graph as arrays, for rules with longer bodies: facts and inverses as edges, and the facts that close a walk.

An edge (x, r, y, t) stands beside its inverse (y, ^r, x, t). Names are coded as whole numbers: R relations are 0 to
R - 1, the inverse of r is r + R. A static graph has one time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_eval_rag.harness.core.types import INVERSE_STEP

if TYPE_CHECKING:
    import polars as pl

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing (Knuth, volume 3, section 6.4)


@dataclass(frozen=True)
class Graph:
    """Edges sorted by subject, then time.

    Args:
        subject: (edges,) int64, as are ``relation``, ``object`` and ``time``; times are ranks from 0.
        relation: From 0 to 2 R - 1.
        names: The R relations, sorted (polars Series).
        entities: Number of entities.
        times: Number of times; 1 if the graph is static.
    """

    subject: Any
    relation: Any
    object: Any
    time: Any
    names: pl.Series
    entities: int
    times: int

    @cached_property
    def starts(self) -> Any:
        """First edge of each entity, and the number of edges: (entities + 1,)."""
        return np.searchsorted(self.subject, np.arange(self.entities + 1))

    @cached_property
    def after(self) -> Any:
        """For each edge the first edge that leaves its object no earlier: (edges,)."""
        return np.searchsorted(self.subject * self.times + self.time, self.object * self.times + self.time)

    @cached_property
    def by_relation(self) -> Any:
        """The edges sorted by relation; those of a relation by subject, then time: (edges,)."""
        return np.argsort(self.relation, kind="stable")

    @cached_property
    def relation_starts(self) -> Any:
        """First place of each relation in ``by_relation``, and the number of edges: (2 R + 1,)."""
        return np.searchsorted(self.relation[self.by_relation], np.arange(2 * len(self.names) + 1))

    def edges_of(self, relation: int) -> Any:
        """The edges of a relation, sorted by subject, then time."""
        return self.by_relation[self.relation_starts[relation] : self.relation_starts[relation + 1]]

    def inverse(self, relation: Any) -> Any:
        """The inverse of relations."""
        count = len(self.names)
        return np.where(relation < count, relation + count, relation - count)

    def name(self, relation: int) -> str:
        """A relation as a step of a path: its name, of an inverse one with ``^``."""
        count = len(self.names)
        return f"{INVERSE_STEP}{self.names[relation - count]}" if relation >= count else str(self.names[relation])


def graph_of(facts: pl.DataFrame, temporal: bool) -> Graph:
    """The graph of a table of facts.

    Args:
        facts: Columns ``subject``, ``relation``, ``object`` and, if temporal, ``time``. Repeated rows count once.
        temporal: Whether the order of times counts; else they are left out.
    """
    import polars as pl

    facts = facts.select("subject", "relation", "object", *(["time"] if temporal else [])).unique()
    names = facts["relation"].unique().sort()
    codes = pl.concat([facts["subject"], facts["object"].rename("subject")]).rank("dense")
    ends = codes.to_numpy().astype(np.int64) - 1
    half = facts.height
    relation = facts["relation"].rank("dense").to_numpy().astype(np.int64) - 1
    time = facts["time"].rank("dense").to_numpy().astype(np.int64) - 1 if temporal else np.zeros(half, np.int64)
    subject, object = ends, np.concatenate([ends[half:], ends[:half]])
    relation, time = np.concatenate([relation, relation + len(names)]), np.tile(time, 2)
    order = np.lexsort((object, relation, time, subject))
    times = int(time.max(initial=0)) + 1
    columns = (subject[order], relation[order], object[order], time[order])
    return Graph(*columns, names, int(ends.max(initial=-1)) + 1, times)


def spread(low: Any, high: Any) -> tuple[Any, Any]:
    """All whole numbers of half-open ranges, one range after the other.

    Args:
        low: (n,) first numbers; ``high`` holds the numbers after the last, none below ``low``.

    Returns:
        The index of the range of each number, and the number.
    """
    count = high - low
    origin = np.repeat(np.arange(len(low)), count)
    return origin, np.arange(len(origin)) + np.repeat(low - (np.cumsum(count) - count), count)


@dataclass(frozen=True)
class Closing:
    """The facts that close walks: for each pair of entities its heads, sorted by the last time at which they hold.

    Args:
        pairs: (pairs,) sorted ``subject * entities + object``.
        last: (heads,) sorted ``place of the pair * (times + 1) + last time``; in a static graph the time is 1, after
            that of every walk.
        head: (heads,) relation.
        ends: (pairs,) the place after the last head of each pair.
        known: Table of hashed pairs; an open pair is nearly always absent there, which saves the search.
        entities: Number of entities.
        times: Number of times.
    """

    pairs: Any
    last: Any
    head: Any
    ends: Any
    known: Any
    entities: int
    times: int

    def heads(self, subject: Any, object: Any, time: Any) -> tuple[Any, Any]:
        """The heads that hold for pairs of entities after a time.

        Returns:
            The index of the pair and the head, one a head; pairs in order.
        """
        keys = subject * self.entities + object
        likely = np.flatnonzero(self.known[_hashed(keys, len(self.known))])
        place = np.searchsorted(self.pairs, keys[likely])
        place[place == len(self.pairs)] = 0
        closed = self.pairs[place] == keys[likely] if len(self.pairs) else np.zeros(0, bool)
        likely, place = likely[closed], place[closed]
        low = np.searchsorted(self.last, place * (self.times + 1) + time[likely] + 1)
        origin, number = spread(low, self.ends[place])
        return likely[origin], self.head[number]


def closing_of(graph: Graph) -> Closing:
    """The heads of all pairs of a graph."""
    facts = np.flatnonzero(graph.relation < len(graph.names))
    keys = graph.subject[facts] * graph.entities + graph.object[facts]
    order = np.lexsort((graph.time[facts], graph.relation[facts], keys))
    keys, facts = keys[order], facts[order]
    relation, time = graph.relation[facts], graph.time[facts]
    newest = np.append((keys[1:] != keys[:-1]) | (relation[1:] != relation[:-1]), True)[: len(keys)]
    keys, relation = keys[newest], relation[newest]
    time = time[newest] if graph.times > 1 else np.ones(int(newest.sum()), np.int64)
    pairs, place = np.unique(keys, return_inverse=True)
    last = place * (graph.times + 1) + time
    order = np.argsort(last, kind="stable")
    known = np.zeros(1 << max(16, int(8 * len(pairs)).bit_length()), bool)
    known[_hashed(pairs, len(known))] = True
    ends = np.searchsorted(place, np.arange(len(pairs)), side="right")
    return Closing(pairs, last[order], relation[order], ends, known, graph.entities, graph.times)


def _hashed(keys: Any, size: int) -> Any:
    """Places of keys in a table whose size is a power of two."""
    return (keys.astype(np.uint64) * MULTIPLIER) >> np.uint64(64 - (size.bit_length() - 1))
