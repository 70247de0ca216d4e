"""Length-3 rules by sampling, temporal and static: candidates from walks, then a fresh sample of each candidate's body.

Definitions are those of :mod:`.mining_paths` with one step more: T1 <= T2 <= T3 < T4 in temporal rules; four different
entities in static ones. A grounding of a body is three edges; it is drawn uniformly among all of them by its number,
which names the middle edge, then one of the edges that may come before it and one that may come after it.

1. ``walks`` groundings of any body are drawn. A rule that holds for at least two of them is a candidate: one with a
   share p of all groundings, as support, is missed with probability (1 - p)^n + n p (1 - p)^(n - 1) for n walks.
2. For each candidate ``samples`` groundings of its body are drawn anew, so that the choice of candidates biases
   nothing. The confidence is the share for which the head holds, with Wilson's 95 % interval. A body with no more
   groundings than ``samples`` is counted whole, and its interval is a point. TLogic (arXiv:2112.08025) samples body
   groundings too.

A temporal body support is exact. Static rules count pairs of entities, not groundings: a grounding is kept with
probability 1 / m, where m groundings join its pair, which leaves a uniform sample of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_eval_rag.harness.rules.body_groundings import Bodies, Draw, groundings_of, number_of_paths
from lm_eval_rag.harness.rules.walks import Closing, Graph, closing_of, graph_of

if TYPE_CHECKING:
    import polars as pl

WALKS, SAMPLES, PER_HEAD, TWICE, Z = 1_000_000, 500, 100, 2, 1.959964
PART = 500  # bodies at once


def mine_length3(
    facts: pl.DataFrame,
    *,
    temporal: bool,
    min_support: int = 1,
    walks: int = WALKS,
    samples: int = SAMPLES,
    per_head: int = PER_HEAD,
    seed: int = 0,
) -> pl.DataFrame:
    """Rules of length 3 with estimated confidences.

    Args:
        facts: Columns ``subject``, ``relation``, ``object`` and, if temporal, ``time``. Repeated rows count once.
        temporal: Whether times count.
        min_support: Of the estimated support; 0 keeps candidates for which no drawn head holds.
        walks: Groundings drawn to find candidates.
        samples: Groundings drawn for each candidate's body.
        per_head: Candidates for one head at most, best first by confidence x sqrt(support) among the walks.
        seed: 0 or more.

    Returns:
        Columns ``head``, ``path`` (list of three steps), ``support`` and ``body_support`` (int64; estimates, but for a
        temporal body support), ``confidence``, ``low`` and ``high`` (its interval), ``pca_confidence`` (null for
        temporal rules), ``sampled`` (groundings or pairs it was estimated from); sorted by head and path.
    """
    import polars as pl

    graph = graph_of(facts, temporal)
    closing, rng = closing_of(graph), np.random.default_rng(seed)
    candidates = _candidates(graph, closing, walks, per_head, temporal, rng) if len(graph.subject) else None
    parts = [] if candidates is None else list(_estimates(graph, closing, candidates, samples, temporal, rng))
    counted = dict.fromkeys(("head", "body", "held", "sampled", "known"), pl.Int64())
    columns = {**counted, "pairs": pl.Float64(), "all": pl.Boolean()}
    counts = pl.concat([pl.DataFrame(schema=columns), *(part.select(*columns) for part in parts)])
    return _finish(counts, graph, temporal, min_support)


def _candidates(
    graph: Graph, closing: Closing, walks: int, per_head: int, temporal: bool, rng: np.random.Generator
) -> pl.DataFrame:
    """Head and body (a number of three digits to the base 2 R) of the rules to be estimated."""
    import polars as pl

    drawn = groundings_of(graph).draw(walks, rng)
    drawn = drawn if temporal else drawn.simple()
    bodies = pl.DataFrame({"body": drawn.body(graph)})
    walk, head = closing.heads(drawn.subject, drawn.object, drawn.time)
    held = pl.DataFrame({"head": head, "body": bodies["body"].gather(walk)}).group_by("head", "body").len("held")
    of = held.filter(pl.col("held") >= TWICE).join(bodies.group_by("body").len("size"), on="body")
    score = pl.col("held") / pl.col("size") * pl.col("held").cast(pl.Float64).sqrt()
    ranked = of.with_columns(score=score).sort(["score", "head", "body"], descending=[True, False, False])
    return ranked.group_by("head", maintain_order=True).head(per_head).select("head", "body").sort("body", "head")


def _estimates(
    graph: Graph, closing: Closing, candidates: pl.DataFrame, samples: int, temporal: bool, rng: np.random.Generator
) -> Iterator[pl.DataFrame]:
    """Of each candidate: how many drawn groundings (static: pairs) were kept, and of how many the head holds."""
    import polars as pl

    bodies, of = candidates["body"].unique().sort().to_numpy(), Bodies(graph)
    for start in range(0, len(bodies), PART):
        part = bodies[start : start + PART]
        drawn, total = of.draw(part, samples, rng)
        size = np.bincount(drawn.number, minlength=len(part))
        if not temporal:
            drawn = _pairs(graph, drawn, total <= samples, rng)
        kept = np.bincount(drawn.number, minlength=len(part))
        walk, head = closing.heads(drawn.subject, drawn.object, drawn.time)
        held = pl.DataFrame({"head": head, "body": part[drawn.number[walk]]}).group_by("head", "body").len("held")
        about = pl.DataFrame({"body": part, "sampled": kept, "pairs": total * kept / np.maximum(size, 1)})
        about = about.with_columns(all=pl.Series(total <= samples))
        rules = candidates.join(about, on="body").join(held, on=["head", "body"], how="left")
        rules = rules.with_columns(pl.col("held").fill_null(0).cast(pl.Int64), known=pl.lit(0, pl.Int64))
        yield rules if temporal else _with_known(rules, graph, drawn, part)


def _pairs(graph: Graph, drawn: Draw, whole: Any, rng: np.random.Generator) -> Draw:
    """The groundings that stand for a uniform sample of pairs; of a body that was drawn whole, one a pair."""
    drawn = drawn.simple()
    pairs = (drawn.number * graph.entities + drawn.subject) * graph.entities + drawn.object
    first = np.zeros(len(pairs), bool)
    first[np.unique(pairs, return_index=True)[1]] = True
    sampled = np.flatnonzero(~whole[drawn.number])
    paths = number_of_paths(graph, drawn.part(sampled))
    first[sampled] = rng.random(len(sampled)) * paths < 1
    return drawn.part(np.flatnonzero(first))


def _with_known(rules: pl.DataFrame, graph: Graph, drawn: Draw, bodies: Any) -> pl.DataFrame:
    """With the number of drawn pairs whose subject has some object under the head."""
    import polars as pl

    forward = graph.relation < len(graph.names)
    heads = pl.DataFrame({"subject": graph.subject[forward], "head": graph.relation[forward]}).unique()
    pairs = pl.DataFrame({"subject": drawn.subject, "body": bodies[drawn.number]}).group_by("subject", "body").len("n")
    known = pairs.join(rules.select("head", "body"), on="body").join(heads, on=["subject", "head"])
    known = known.group_by("head", "body").agg(pl.col("n").sum().cast(pl.Int64).alias("known"))
    return rules.drop("known").join(known, on=["head", "body"], how="left").with_columns(pl.col("known").fill_null(0))


def _finish(counts: pl.DataFrame, graph: Graph, temporal: bool, min_support: int) -> pl.DataFrame:
    """Estimates with their intervals, and names."""
    import polars as pl

    base = 2 * len(graph.names)
    names = pl.Series("step", [graph.name(code) for code in range(base)], dtype=pl.String)
    bodies = counts["body"].to_numpy()
    digits = (bodies // max(base, 1) ** 2, bodies // max(base, 1) % max(base, 1), bodies % max(base, 1))
    counts = counts.with_columns(
        head=graph.names.gather(counts["head"]), path=pl.concat_list(*(names.gather(digit) for digit in digits))
    ).filter(pl.col("sampled") > 0)
    n, p = pl.col("sampled"), pl.col("held") / pl.col("sampled")
    centre, root = (p + Z**2 / (2 * n)) / (1 + Z**2 / n), (p * (1 - p) / n + Z**2 / (4 * n**2)).sqrt()
    half = Z * root / (1 + Z**2 / n)
    pca = pl.lit(None, pl.Float64) if temporal else pl.col("held") / pl.col("known")
    return (
        counts.select(
            "head",
            "path",
            support=(p * pl.col("pairs")).round().cast(pl.Int64),
            body_support=pl.col("pairs").round().cast(pl.Int64),
            confidence=p,
            low=pl.when("all").then(p).otherwise((centre - half).clip(0, 1)),
            high=pl.when("all").then(p).otherwise((centre + half).clip(0, 1)),
            pca_confidence=pca.fill_nan(None),
            sampled="sampled",
        )
        .filter(pl.col("support") >= min_support)
        .sort("head", "path")
    )
