"""Exact mining of length-1 rules [x, body, y] leads to [x, head, y] by joins on the entity pair, without sampling.

Temporal confidence follows TLogic (arXiv:2112.08025, section 4): a body fact (x, body, y, t) counts as followed when
(x, head, y) holds at some later t' > t; TLogic samples the body facts, here all are counted. Static confidence follows
AMIE (WWW 2013, sections 3.2 and 5.1; AMIE 3, ESWC 2020): support is the number of pairs (x, y) with body and head,
standard confidence divides it by the pairs with the body, PCA confidence by those of them whose x has any object
under the head. AMIE 3 may switch the PCA to y for inverse-functional heads; questions ask for y, so x is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

PAIR = ["subject", "object"]


def mine_temporal(facts: pl.DataFrame) -> pl.DataFrame:
    """All rules of a temporal graph with support of at least 1, identity rules among them.

    Args:
        facts: Columns ``subject``, ``relation``, ``object``, ``time`` (any type with an order); repeated rows count
            once.

    Returns:
        Columns ``head``, ``body`` (type of ``relation``), ``support``, ``body_support`` (int64), ``confidence``
        (float64 in (0, 1]), ``pca_confidence`` (null, not defined here); sorted by head and body.
    """
    import polars as pl

    facts = facts.select(*PAIR, "relation", "time").unique()
    bodies = facts.rename({"relation": "body"})
    last = facts.group_by(*PAIR, pl.col("relation").alias("head")).agg(pl.col("time").max().alias("last"))
    followed = bodies.join(last, on=PAIR).filter(pl.col("time") < pl.col("last"))
    support = followed.group_by("head", "body").agg(pl.len().cast(pl.Int64).alias("support"))
    size = bodies.group_by("body").agg(pl.len().cast(pl.Int64).alias("body_support"))
    return _finish(support.join(size, on="body").with_columns(pca_confidence=pl.lit(None, pl.Float64)))


def mine_static(facts: pl.DataFrame) -> pl.DataFrame:
    """All cross-relation rules of a static graph with support of at least 1.

    Args:
        facts: Columns ``subject``, ``relation``, ``object``; repeated rows count once.

    Returns:
        As :func:`mine_temporal`, with ``pca_confidence`` in [confidence, 1]; no identity rules, which say nothing here.
    """
    import polars as pl

    facts = facts.select(*PAIR, "relation").unique()
    bodies = facts.rename({"relation": "body"})
    both = bodies.join(facts.rename({"relation": "head"}), on=PAIR).filter(pl.col("head") != pl.col("body"))
    support = both.group_by("head", "body").agg(pl.len().cast(pl.Int64).alias("support"))
    size = bodies.group_by("body").agg(pl.len().cast(pl.Int64).alias("body_support"))
    # Pairs of the body whose subject has some object under the head: summed over subjects, so no pair is listed.
    degree = bodies.group_by("subject", "body").agg(pl.len().cast(pl.Int64).alias("pairs"))
    heads = facts.select("subject", pl.col("relation").alias("head")).unique()
    known = degree.join(heads, on="subject").group_by("head", "body").agg(pl.col("pairs").sum().alias("known"))
    rules = support.join(size, on="body").join(known, on=["head", "body"])
    return _finish(rules.with_columns(pca_confidence=pl.col("support") / pl.col("known")))


def rank(rules: pl.DataFrame) -> pl.DataFrame:
    """The rules best first: by confidence x sqrt(support), ties by head, then body."""
    import polars as pl

    worth = pl.col("confidence") * pl.col("support").cast(pl.Float64).sqrt()
    by = rules.with_columns(_worth=worth).sort(["_worth", "head", "body"], descending=[True, False, False])
    return by.drop("_worth")


def _finish(rules: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    rules = rules.with_columns(confidence=pl.col("support") / pl.col("body_support"))
    columns = ["head", "body", "support", "body_support", "confidence", "pca_confidence"]
    return rules.select(columns).sort("head", "body")
