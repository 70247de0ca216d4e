"""Exact mining of length-2 rules "[x, r1, z] and [z, r2, y] lead to [x, head, y]", temporal and static.

Every step of a body may be followed in either direction; ``^`` stands before a relation that is followed from object to
subject.

Temporal rules are TLogic's (arXiv:2112.08025, "Temporal logical rule"): times are ordered T1 <= T2 < T3. As in its
estimation of confidence, the body support is the number of body groundings (x, r1, z, t1), (z, r2, y, t2) with
t1 <= t2; the support is the number of those for which (x, head, y, t3) holds at some t3 > t2; the confidence is their
ratio. TLogic samples the groundings; here all are counted. It makes one variable of entities that a walk repeats; here
every rule has three variables, which may stand for one entity.

Static rules follow AMIE (WWW 2013, sections 3.2 and 5.1) as length-1 rules do (:mod:`.mining`): support, standard
confidence and PCA confidence count pairs (x, y), however many z lead from one to the other. The entities x, z and y
differ from each other; else a fact would prove itself over a loop.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_eval_rag.harness.rules.walks import Closing, Graph, closing_of, graph_of, spread

if TYPE_CHECKING:
    import polars as pl

WALKS = 1 << 21  # that are held at once, about 100 bytes each
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Counts:
    """Of the bodies that begin with one relation r1; arrays of one number per (head, r2), or per r2."""

    support: Any
    known: Any
    body_support: Any


def mine_length2(
    facts: pl.DataFrame, *, temporal: bool, min_support: int = 1, first: Iterable[int] | None = None
) -> pl.DataFrame:
    """All rules of length 2 with a support of ``min_support`` or more.

    Args:
        facts: Columns ``subject``, ``relation``, ``object`` and, if temporal, ``time``. Repeated rows count once.
        temporal: Whether times count.
        min_support: 1 or more.
        first: Codes of the relations with which bodies begin (:mod:`lm_eval_rag.harness.rules.walks`), to divide the
            work; None for all. The rules of several blocks together are those of one call.

    Returns:
        Columns ``head``, ``path`` (list of two steps), ``support``, ``body_support`` (int64), ``confidence`` in (0, 1],
        ``pca_confidence`` in [confidence, 1] (null for temporal rules); sorted by head and path.
    """
    graph = graph_of(facts, temporal)
    return mine_graph(graph, closing_of(graph), temporal=temporal, min_support=min_support, first=first)


def mine_graph(
    graph: Graph, closing: Closing, *, temporal: bool, min_support: int = 1, first: Iterable[int] | None = None
) -> pl.DataFrame:
    """As :func:`mine_length2`, of facts whose graph is there already."""
    import polars as pl

    blocks, heads_of = [], None if temporal else _heads_of_subjects(graph)
    for relation in range(2 * len(graph.names)) if first is None else first:
        counts = _count(graph, closing, relation, heads_of)
        head, second = np.nonzero(counts.support >= min_support)
        support, body_support = counts.support[head, second], counts.body_support[second]
        known = counts.known[head, second]
        blocks.append((head, np.full(len(head), relation), second, support, body_support, known))
    columns = [np.concatenate([block[i] for block in blocks] or [np.zeros(0, np.int64)]) for i in range(6)]
    names = ("head", "first", "second", "support", "body_support", "known")
    return _finish(pl.DataFrame(dict(zip(names, columns, strict=True))), graph, temporal)


def _count(graph: Graph, closing: Closing, relation: int, heads_of: Any) -> _Counts:
    """Count the bodies that begin with ``relation``."""
    heads, steps = len(graph.names), 2 * len(graph.names)
    support, known = (np.zeros(heads * steps, np.int64) for _ in range(2))
    body_support = np.zeros(steps, np.int64)
    for edge, second in _walks(graph, graph.edges_of(relation)):
        subject, object, step = graph.subject[edge], graph.object[second], graph.relation[second]
        if heads_of is not None:  # static: pairs are counted, not walks
            middle = graph.object[edge]
            simple = (subject != middle) & (object != middle) & (subject != object)
            subject, object, step = _pairs(graph, subject[simple], object[simple], step[simple])
            known += _known(heads_of, subject, step, heads, steps)
        body_support += np.bincount(step, minlength=steps)
        time = graph.time[second] if heads_of is None else np.zeros(len(subject), np.int64)
        walk, head = closing.heads(subject, object, time)
        support += np.bincount(head * steps + step[walk], minlength=len(support))
    return _Counts(support.reshape(heads, steps), known.reshape(heads, steps), body_support)


def _walks(graph: Graph, edges: Any) -> Iterator[tuple[Any, Any]]:
    """The walks of two edges that begin with given ones, as (first edge, second edge), in parts of whole subjects."""
    low, high = graph.after[edges], graph.starts[graph.object[edges] + 1]
    total = np.cumsum(high - low)
    begins = np.flatnonzero(np.append(True, graph.subject[edges][1:] != graph.subject[edges][:-1])[: len(edges)])
    part = (total[begins] - (high - low)[begins]) // WALKS  # of each subject
    cuts = begins[np.flatnonzero(np.append(True, part[1:] != part[:-1])[: len(part)])]
    for start, stop in zip(cuts, np.append(cuts, len(edges))[1:], strict=True):
        origin, second = spread(low[start:stop], high[start:stop])
        yield edges[start:stop][origin], second


def _pairs(graph: Graph, subject: Any, object: Any, step: Any) -> tuple[Any, Any, Any]:
    """Each (subject, object, step) once."""
    keys = np.unique((subject * 2 * len(graph.names) + step) * graph.entities + object)
    rest, object = np.divmod(keys, graph.entities)
    subject, step = np.divmod(rest, 2 * len(graph.names))
    return subject, object, step


def _heads_of_subjects(graph: Graph) -> tuple[Any, Any]:
    """The relations that each entity has an object under: (entities + 1,) starts, and the relations."""
    facts = graph.relation < len(graph.names)
    keys = np.unique(graph.subject[facts] * len(graph.names) + graph.relation[facts])
    subject, head = np.divmod(keys, max(len(graph.names), 1))
    return np.searchsorted(subject, np.arange(graph.entities + 1)), head


def _known(heads_of: tuple[Any, Any], subject: Any, step: Any, heads: int, steps: int) -> Any:
    """For each (head, step) the pairs whose subject has some object under the head; pairs are sorted by both."""
    starts, head = heads_of
    first = np.flatnonzero(np.diff(subject * steps + step, prepend=-1))
    pairs = np.diff(first, append=len(subject))
    where, number = spread(starts[subject[first]], starts[subject[first] + 1])
    counted = np.bincount(head[number] * steps + step[first][where], pairs[where], heads * steps)
    return counted.astype(np.int64)  # whole numbers below 2^53, so that float64 holds them exactly


def _finish(rules: pl.DataFrame, graph: Graph, temporal: bool) -> pl.DataFrame:
    """The table of rules with names."""
    import polars as pl

    steps = pl.Series("step", [graph.name(code) for code in range(2 * len(graph.names))], dtype=pl.String)
    pca = pl.lit(None, pl.Float64) if temporal else pl.col("support") / pl.col("known")
    return rules.select(
        head=graph.names.gather(rules["head"]),
        path=pl.concat_list(steps.gather(rules["first"]), steps.gather(rules["second"])),
        support="support",
        body_support="body_support",
        confidence=pl.col("support") / pl.col("body_support"),
        pca_confidence=pca,
    ).sort("head", "path")
