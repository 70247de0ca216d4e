"""Groundings of three steps, numbered so that a uniform number is a uniform grounding (:mod:`.mining_sampled`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from lm_eval_rag.harness.rules.walks import Graph, spread

PATHS = 1 << 20  # that are looked at at once


@dataclass(frozen=True)
class Draw:
    """Drawn groundings (x, r1, z1), (z1, r2, z2), (z2, r3, y); arrays of one number each.

    Args:
        subject: x; ``first`` is z1, ``second`` z2, ``object`` y.
        time: Of the last step.
        steps: (r1, r2, r3).
        number: Place of the body among those that were drawn for.
    """

    subject: Any
    first: Any
    second: Any
    object: Any
    time: Any
    steps: tuple[Any, Any, Any]
    number: Any

    def part(self, places: Any) -> Draw:
        """Some of the groundings."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        steps = tuple(step[places] for step in values.pop("steps"))
        return Draw(**{name: value[places] for name, value in values.items()}, steps=steps)

    def simple(self) -> Draw:
        """The groundings of four different entities."""
        x, a, b, y = self.subject, self.first, self.second, self.object
        return self.part(np.flatnonzero((x != a) & (x != b) & (x != y) & (a != b) & (a != y) & (b != y)))

    def body(self, graph: Graph) -> Any:
        """The steps as one number: three digits to the base 2 R."""
        first, second, third = self.steps
        return (first * 2 * len(graph.names) + second) * 2 * len(graph.names) + third


@dataclass(frozen=True)
class Groundings:
    """All groundings whose middle edge is one of ``middle``.

    Args:
        graph: The graph; edges are places in its arrays as ``order`` has them.
        order: (edges,) the edges in the order in which ranges are given.
        middle: (m,) edges.
        before: (m,) first place of the inverses of the edges that may come before the middle, and their number.
        after: (m,) first place of the edges that may come after it, and their number.
    """

    graph: Graph
    order: Any
    middle: Any
    before: tuple[Any, Any]
    after: tuple[Any, Any]
    ends: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", np.cumsum(self.before[1] * self.after[1]))

    @property
    def total(self) -> int:
        """Number of groundings."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def draw(self, n: int, rng: np.random.Generator, body: int = 0) -> Draw:
        """``n`` groundings, uniformly with replacement; if there are no more than ``n``, each of them once."""
        total = self.total
        numbers = np.arange(total) if total <= n else rng.integers(0, total, n)
        place = np.searchsorted(self.ends, numbers, side="right")
        many = self.after[1][place]
        rest = numbers - (self.ends[place] - self.before[1][place] * many)
        graph, middle = self.graph, self.middle[place]
        before = self.order[self.before[0][place] + rest // many]
        after = self.order[self.after[0][place] + rest % many]
        return Draw(
            subject=graph.object[before],
            first=graph.subject[middle],
            second=graph.object[middle],
            object=graph.object[after],
            time=graph.time[after] if graph.times > 1 else np.zeros(len(after), np.int64),
            steps=(graph.inverse(graph.relation[before]), graph.relation[middle], graph.relation[after]),
            number=np.full(len(after), body),
        )


def groundings_of(graph: Graph) -> Groundings:
    """The groundings of all bodies."""
    edges = np.arange(len(graph.subject))
    keys = graph.subject * graph.times + graph.time
    low = graph.starts[graph.subject]
    before = (low, np.searchsorted(keys, keys, side="right") - low)
    return Groundings(graph, edges, edges, before, (graph.after, graph.starts[graph.object + 1] - graph.after))


class Bodies:
    """Draws for one body after the other; ranges that neighbours share are looked up once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        order = graph.by_relation
        self._keys = self._key(graph.relation[order], graph.subject[order], graph.time[order])

    def draw(self, bodies: Any, samples: int, rng: np.random.Generator) -> tuple[Draw, Any]:
        """``samples`` groundings of each body, and the number of all its groundings (bodies,).

        Args:
            bodies: Numbers of three digits to the base 2 R.
        """
        base = 2 * len(self.graph.names)
        first, second, third = bodies // base**2, bodies // base % base, bodies % base
        draws: list[Any] = [None] * len(bodies)
        total, cache, last = np.zeros(len(bodies), np.int64), dict[tuple[str, int], Any](), -1
        for number in np.lexsort((third, first, second)).tolist():
            middle = int(second[number])
            if middle != last:
                cache, last = {}, middle
            before = self._range(cache, "before", middle, int(first[number]))
            after = self._range(cache, "after", middle, int(third[number]))
            groundings = Groundings(self.graph, self.graph.by_relation, self.graph.edges_of(middle), before, after)
            draws[number], total[number] = groundings.draw(samples, rng, number), groundings.total
        return _joined(draws), total

    def _range(self, cache: dict[tuple[str, int], Any], side: str, middle: int, relation: int) -> Any:
        """First place and number of the edges of a relation that may come before or after those of ``middle``."""
        if (side, relation) not in cache:
            graph, edges = self.graph, self.graph.edges_of(middle)
            if side == "before":
                turned = int(graph.inverse(relation))
                low = self._key(turned, graph.subject[edges], 0)
                high = self._key(turned, graph.subject[edges], graph.time[edges]) + 1
            else:
                low = self._key(relation, graph.object[edges], graph.time[edges])
                high = self._key(relation, graph.object[edges] + 1, 0)
            start = np.searchsorted(self._keys, low)
            cache[side, relation] = (start, np.searchsorted(self._keys, high) - start)
        return cache[side, relation]

    def _key(self, relation: Any, subject: Any, time: Any) -> Any:
        return (relation * self.graph.entities + subject) * self.graph.times + time


def _joined(draws: list[Draw]) -> Draw:
    columns = {
        one.name: np.concatenate([getattr(draw, one.name) for draw in draws])
        for one in fields(Draw)
        if one.name != "steps"
    }
    first, second, third = (np.concatenate(steps) for steps in zip(*(draw.steps for draw in draws), strict=True))
    return Draw(**columns, steps=(first, second, third))


def number_of_paths(graph: Graph, drawn: Draw) -> Any:
    """Of each drawn grounding of a static graph: how many groundings of its body, of four entities, join its pair."""
    order = graph.by_relation
    subject, object = graph.subject[order], graph.object[order]
    outs = graph.relation[order] * graph.entities + subject
    facts = outs * graph.entities + object  # sorted: without times, the edges of a subject are sorted by object
    first, second, third = drawn.steps
    count = np.zeros(len(drawn.subject), np.int64)
    for of, a in _leads(outs, object, first * graph.entities + drawn.subject):
        keep = (a != drawn.subject[of]) & (a != drawn.object[of])
        of, a = of[keep], a[keep]
        for again, b in _leads(outs, object, second[of] * graph.entities + a):
            one, middle = of[again], a[again]
            x, y = drawn.subject[one], drawn.object[one]
            last = (third[one] * graph.entities + b) * graph.entities + y
            held = facts[np.minimum(np.searchsorted(facts, last), len(facts) - 1)] == last
            held &= (b != x) & (b != middle) & (b != y)
            count += np.bincount(one[held], minlength=len(count))
    return count


def _leads(outs: Any, object: Any, keys: Any) -> Iterator[tuple[Any, Any]]:
    """Of each (relation, subject) all objects: (index of the key, object), in parts of about ``PATHS``."""
    low, high = np.searchsorted(outs, keys), np.searchsorted(outs, keys, side="right")
    part = np.cumsum(high - low) // PATHS
    cuts = np.flatnonzero(np.diff(part, prepend=-1))
    for start, stop in zip(cuts, np.append(cuts, len(keys))[1:], strict=True):
        where, place = spread(low[start:stop], high[start:stop])
        yield start + where, object[place]
