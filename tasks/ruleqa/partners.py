"""Symmetric and inverse relations of a graph, found by counting.

A relation is symmetric if most of its triples also stand reversed under it. Two relations are inverse if most triples
of each stand reversed under the other. A held-out fact of such a relation is no secret while its reverse is known.
"""

from __future__ import annotations

import polars as pl

MIN_SHARE = 0.5  # of the triples of either relation that stand reversed under the other
MIN_TRIPLES = 20  # that stand reversed; fewer are chance
TRIPLE = ["subject", "relation", "object"]


def partners(facts: pl.DataFrame) -> pl.DataFrame:
    """Pairs of a relation and its partner; a symmetric relation is its own partner, an inverse pair has two rows.

    Args:
        facts: Columns ``subject``, ``relation``, ``object``. Times do not matter; self-loops do not count.

    Returns:
        Columns ``relation``, ``partner``, ``triples`` (that stand reversed under the partner), ``share`` (of the
        relation's triples, at least ``MIN_SHARE``); sorted by relation and partner.
    """
    triples = facts.filter(pl.col("subject") != pl.col("object")).select(TRIPLE).unique()
    turned = triples.select(
        pl.col("object").alias("subject"), pl.col("relation").alias("partner"), pl.col("subject").alias("object")
    )
    both = triples.join(turned, on=["subject", "object"]).group_by("relation", "partner").agg(triples=pl.len())
    sizes = triples.group_by("relation").agg(size=pl.len())
    shares = both.join(sizes, on="relation").join(
        sizes.rename({"relation": "partner", "size": "partner_size"}), on="partner"
    )
    enough = pl.col("triples") >= pl.max_horizontal(MIN_SHARE * pl.max_horizontal("size", "partner_size"), MIN_TRIPLES)
    chosen = shares.filter(enough).with_columns(share=pl.col("triples") / pl.col("size"))
    return chosen.select("relation", "partner", "triples", "share").sort("relation", "partner")


def reversed_facts(facts: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """What each fact says reversed under its relation's partners: distinct ``subject``, ``relation``, ``object``.

    Args:
        facts: Columns ``subject``, ``relation``, ``object``.
        pairs: Result of :func:`partners`.
    """
    turned = facts.select(TRIPLE).unique().join(pairs.select("relation", "partner"), on="relation")
    return turned.select(
        pl.col("object").alias("subject"), pl.col("partner").alias("relation"), pl.col("subject").alias("object")
    ).unique()
