"""Exact mining of length-1 rules "[x, body, y] leads to [x, head, y]" by joins on the entity pair, without sampling.

By option, inverse rules "[y, body, x] leads to [x, head, y]" are mined instead. The papers below have such rules too:
TLogic writes them with inverse relations, AMIE as r(y, x).

Temporal confidence follows TLogic (arXiv:2112.08025, section 4): the share of body facts (x, body, y, t) for which
(x, head, y) holds at some later t' > t. TLogic samples the body facts; here all are counted. Static confidence follows
AMIE (WWW 2013, sections 3.2 and 5.1; AMIE 3, ESWC 2020): support is the number of pairs (x, y) with body and head,
standard confidence divides it by the pairs with the body, PCA confidence by those of them whose x has any object
under the head. AMIE 3 may apply the PCA to y for inverse-functional heads; here it always applies to x, since questions
ask for y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

PAIR = ["subject", "object"]


def mine_temporal(facts: pl.DataFrame, *, inverse: bool = False) -> pl.DataFrame:
    """All rules of a temporal graph with support of 1 or more, including identity rules.

    Args:
        facts: Columns ``subject``, ``relation``, ``object``, ``time`` (of an ordered type). Repeated rows count once.
        inverse: Mine inverse rules, including those of a symmetric relation.

    Returns:
        Columns ``head``, ``body`` (type of ``relation``), ``support``, ``body_support`` (int64), ``confidence``
        (float64 in (0, 1]), ``pca_confidence`` (null: not defined for them); sorted by head and body.
    """
    import polars as pl

    facts = facts.select(*PAIR, "relation", "time").unique()
    bodies = _bodies(facts, inverse)
    last = facts.group_by(*PAIR, pl.col("relation").alias("head")).agg(pl.col("time").max().alias("last"))
    followed = bodies.join(last, on=PAIR).filter(pl.col("time") < pl.col("last"))
    support = followed.group_by("head", "body").agg(pl.len().cast(pl.Int64).alias("support"))
    size = bodies.group_by("body").agg(pl.len().cast(pl.Int64).alias("body_support"))
    return _finish(support.join(size, on="body").with_columns(pca_confidence=pl.lit(None, pl.Float64)))


def mine_static(facts: pl.DataFrame, *, inverse: bool = False) -> pl.DataFrame:
    """All rules of a static graph between two relations with support of 1 or more.

    Args:
        facts: Columns ``subject``, ``relation``, ``object``. Repeated rows count once.
        inverse: Mine inverse rules, including those of a symmetric relation.

    Returns:
        As :func:`mine_temporal`, with ``pca_confidence`` in [confidence, 1]. Identity rules, always true, are left out.
    """
    import polars as pl

    facts = facts.select(*PAIR, "relation").unique()
    bodies = _bodies(facts, inverse)
    both = bodies.join(facts.rename({"relation": "head"}), on=PAIR)
    if not inverse:
        both = both.filter(pl.col("head") != pl.col("body"))
    support = both.group_by("head", "body").agg(pl.len().cast(pl.Int64).alias("support"))
    size = bodies.group_by("body").agg(pl.len().cast(pl.Int64).alias("body_support"))
    # Pairs of the body whose subject has some object under the head: counted by subject, without listing the pairs.
    degree = bodies.group_by("subject", "body").agg(pl.len().cast(pl.Int64).alias("pairs"))
    heads = facts.select("subject", pl.col("relation").alias("head")).unique()
    known = degree.join(heads, on="subject").group_by("head", "body").agg(pl.col("pairs").sum().alias("known"))
    rules = support.join(size, on="body").join(known, on=["head", "body"])
    return _finish(rules.with_columns(pca_confidence=pl.col("support") / pl.col("known")))


def best_first(rules: pl.DataFrame, body: str = "body") -> pl.DataFrame:
    """The rules sorted by confidence x sqrt(support), highest first, ties by head, then the column ``body``."""
    import polars as pl

    score = pl.col("confidence") * pl.col("support").cast(pl.Float64).sqrt()
    ordered = rules.with_columns(_score=score).sort(["_score", "head", body], descending=[True, False, False])
    return ordered.drop("_score")


def _bodies(facts: pl.DataFrame, inverse: bool) -> pl.DataFrame:
    """The facts as bodies; those of inverse rules with subject and object exchanged."""
    exchanged = dict(zip(PAIR, reversed(PAIR), strict=True)) if inverse else {}
    return facts.rename({"relation": "body", **exchanged})


def _finish(rules: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    rules = rules.with_columns(confidence=pl.col("support") / pl.col("body_support"))
    columns = ["head", "body", "support", "body_support", "confidence", "pca_confidence"]
    return rules.select(columns).sort("head", "body")
