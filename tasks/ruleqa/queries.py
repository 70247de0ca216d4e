"""Questions from held-out facts, their slices, and the draw of the query set Q."""

from __future__ import annotations

import polars as pl

from lm_eval_rag.tasks.ruleqa.draw import level, lots

KEY = ["subject", "relation", "time"]
SLICES = ("direct", "rule_required", "unreachable")
POPULARITY = ("head", "torso", "tail")
SELECTED = 3  # rules of a query: the default of the methods


def questions(facts: pl.DataFrame) -> pl.DataFrame:
    """One row a (subject, relation, time) with all its objects, ascending, as the list ``answers``; sorted by time."""
    grouped = facts.group_by(KEY).agg(pl.col("object").unique().sort().alias("answers"))
    return grouped.sort("time", "subject", "relation")


def selected(bank: pl.DataFrame) -> pl.DataFrame:
    """The first ``SELECTED`` cross-relation rules of each head, of a bank that is sorted best first."""
    return bank.filter(pl.col("head") != pl.col("body")).group_by("head", maintain_order=True).head(SELECTED)


def with_slices(asked: pl.DataFrame, documents: pl.DataFrame, bank: pl.DataFrame) -> pl.DataFrame:
    """Add ``slice``.

    ``direct``: some document states the subject, the relation and a gold answer, at any time. ``rule_required``: none
    does, but one states subject and gold answer under the body of one of the query's selected rules. Else
    ``unreachable``.

    Args:
        asked: Of :func:`questions`.
        documents: The facts of D.
        bank: Relation ids in ``head`` and ``body``, best first.
    """
    stated = documents.select("subject", "relation", "object").unique()
    gold = asked.select(*KEY, pl.col("answers").alias("object")).explode("object")
    ways = selected(bank).select(pl.col("head").alias("relation"), "body")
    direct = gold.join(stated, on=["subject", "relation", "object"], how="semi")
    through = gold.join(ways, on="relation").join(
        stated.rename({"relation": "body"}), on=["subject", "body", "object"], how="semi"
    )
    marks = [
        part.select(KEY).unique().with_columns(pl.lit(True).alias(mark))
        for part, mark in ((direct, "direct"), (through, "through"))
    ]
    for mark in marks:
        asked = asked.join(mark, on=KEY, how="left", nulls_equal=True, maintain_order="left")
    chosen = pl.when("direct").then(pl.lit("direct")).when("through").then(pl.lit("rule_required"))
    return asked.with_columns(slice=chosen.otherwise(pl.lit("unreachable"))).drop("direct", "through")


def with_popularity(asked: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Add ``popularity``: the tertile of mention mass of the query's most mentioned gold answer.

    Entities are ordered by their mentions in D (as subject or object), most first, ties by id: ``head`` are those
    before which less than a third of all mentions lie, ``torso`` less than two thirds, ``tail`` the rest and what D
    never names.
    """
    mentions = pl.concat([documents["subject"], documents["object"]]).alias("entity").value_counts()
    ordered = mentions.sort("count", "entity", descending=[True, False])
    tertile = 3 * (pl.col("count").cum_sum() - pl.col("count")).cast(pl.Int64) // pl.col("count").sum()
    tertiles = ordered.select(pl.col("entity").alias("answers"), tertile.alias("tertile"))
    best = (
        asked.select(*KEY, "answers")
        .explode("answers")
        .join(tertiles, on="answers", how="left")
        .group_by(KEY)
        .agg(pl.col("tertile").min().fill_null(2))
    )
    label = pl.col("tertile").replace_strict(dict(enumerate(POPULARITY)), return_dtype=pl.String)
    joined = asked.join(best, on=KEY, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(popularity=label).drop("tertile")


def drawn(asked: pl.DataFrame, n: int, *, seed: int = 0) -> pl.DataFrame:
    """Add ``in_main``, true for the ``n`` queries of Q (fewer where supply is smaller), and shuffle the rows.

    rule_required takes its natural share, or a third of ``n`` where that is more and supply allows. Within it and then
    over all of Q, head, torso and tail are as even as supply allows; the rest is left to the lot.
    """
    asked = asked.with_columns(lots(asked, KEY, seed=seed, stage="queries")).sort("lot", *KEY)
    n = min(n, asked.height)
    needed = asked.filter(pl.col("slice") == "rule_required")
    others = asked.filter(pl.col("slice") != "rule_required")
    quota = max(-(-n // 3), round(n * needed.height / max(asked.height, 1)))
    quota = max(min(quota, needed.height), n - others.height)
    first = level(_supply(needed), quota)
    second = level(_supply(others), n - quota, first)
    chosen = pl.concat([*_take(needed, first), *_take(others, second)]).select(KEY).with_columns(in_main=True)
    marked = asked.join(chosen, on=KEY, how="left", nulls_equal=True, maintain_order="left")
    return marked.with_columns(pl.col("in_main").fill_null(False)).drop("lot")


def _supply(asked: pl.DataFrame) -> list[int]:
    return [asked.filter(pl.col("popularity") == label).height for label in POPULARITY]


def _take(asked: pl.DataFrame, counts: list[int]) -> list[pl.DataFrame]:
    return [asked.filter(pl.col("popularity") == label).head(n) for label, n in zip(POPULARITY, counts, strict=True)]
