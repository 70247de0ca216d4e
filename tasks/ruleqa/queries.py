"""Questions from held-out facts, their slices, and sampling of the query set Q."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lm_eval_rag.tasks.ruleqa.draw import level, lots

KEY = ["subject", "relation", "time"]
SLICES = ("direct", "rule_required", "unreachable")  # of the demo set
POPULARITY = ("head", "torso", "tail")
SELECTED = 3  # rules per query, as in the methods by default


def questions(facts: pl.DataFrame) -> pl.DataFrame:
    """One row per (subject, relation, time) with all its objects, ascending, as list ``answers``; sorted by time."""
    grouped = facts.group_by(KEY).agg(pl.col("object").unique().sort().alias("answers"))
    return grouped.sort("time", "subject", "relation")


def one_each(frame: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """At most one question of each subject and relation, drawn at random; the order stays."""
    drawn_lots = frame.with_columns(lots(frame, KEY, seed=seed, stage="one each"))
    first = pl.col("lot") == pl.col("lot").min().over("subject", "relation")
    return drawn_lots.filter(first).drop("lot")


def selected(bank: pl.DataFrame) -> pl.DataFrame:
    """The first ``SELECTED`` cross-relation rules of each head; the bank is sorted best first."""
    return bank.filter(pl.col("head") != pl.col("body")).group_by("head", maintain_order=True).head(SELECTED)


def with_slices(frame: pl.DataFrame, documents: pl.DataFrame, bank: pl.DataFrame) -> pl.DataFrame:
    """Add ``slice`` in three values, as the demo set has it; others have :mod:`lm_eval_rag.tasks.ruleqa.slices`.

    ``direct``: a document states the subject, the relation and a gold answer, at any time. ``rule_required``: none
    does, but a document states the subject and a gold answer with the body of one of the query's selected rules as
    relation. ``unreachable``: all others.

    Args:
        frame: Result of :func:`questions`.
        documents: The facts of D.
        bank: Relation ids in ``head`` and ``body``, best first.
    """
    stated = documents.select("subject", "relation", "object").unique()
    gold = frame.select(*KEY, pl.col("answers").alias("object")).explode("object")
    ways = selected(bank).select(pl.col("head").alias("relation"), "body")
    direct = gold.join(stated, on=["subject", "relation", "object"], how="semi")
    through = gold.join(ways, on="relation").join(
        stated.rename({"relation": "body"}), on=["subject", "body", "object"], how="semi"
    )
    return marked(frame, "slice", {"direct": direct, "rule_required": through}, otherwise="unreachable")


def marked(frame: pl.DataFrame, column: str, found: Mapping[str, pl.DataFrame], *, otherwise: str) -> pl.DataFrame:
    """Add a column with the first value whose table has the question; else ``otherwise``.

    Args:
        found: Value -> rows with the columns ``KEY``.
    """
    keys = [rows.select(KEY).unique().with_columns(pl.lit(i).alias("_rank")) for i, rows in enumerate(found.values())]
    first = pl.concat(keys).group_by(KEY).agg(pl.col("_rank").min())
    joined = frame.join(first, on=KEY, how="left", nulls_equal=True, maintain_order="left")
    label = pl.col("_rank").replace_strict(dict(enumerate(found)), default=otherwise, return_dtype=pl.String)
    return joined.with_columns(label.alias(column)).drop("_rank")


def with_popularity(frame: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Add ``popularity``: the tertile, by mentions, of the query's most mentioned gold answer.

    Entities are sorted by their number of mentions in D (as subject or object), most first, ties by id. ``head``: the
    entities before it have less than a third of all mentions; ``torso``: less than two thirds; ``tail``: the others,
    and entities without mentions.
    """
    mentions = pl.concat([documents["subject"], documents["object"]]).alias("entity").value_counts()
    ordered = mentions.sort("count", "entity", descending=[True, False])
    tertile = 3 * (pl.col("count").cum_sum() - pl.col("count")).cast(pl.Int64) // pl.col("count").sum()
    tertiles = ordered.select(pl.col("entity").alias("answers"), tertile.alias("tertile"))
    best = (
        frame.select(*KEY, "answers")
        .explode("answers")
        .join(tertiles, on="answers", how="left")
        .group_by(KEY)
        .agg(pl.col("tertile").min().fill_null(2))
    )
    label = pl.col("tertile").replace_strict(dict(enumerate(POPULARITY)), return_dtype=pl.String)
    joined = frame.join(best, on=KEY, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(popularity=label).drop("tertile")


def drawn(frame: pl.DataFrame, n: int, *, seed: int = 0) -> pl.DataFrame:
    """Add ``in_main``, true for the ``n`` queries of Q (or all if there are fewer), and shuffle the rows.

    rule_required questions get their natural share, or a third of ``n`` if that is more, as far as there are enough.
    Within them, and then in all of Q, head, torso and tail are as equal as possible. Otherwise the choice is random.
    """
    frame = frame.with_columns(lots(frame, KEY, seed=seed, stage="queries")).sort("lot", *KEY)
    n = min(n, frame.height)
    needed = frame.filter(pl.col("slice") == "rule_required")
    others = frame.filter(pl.col("slice") != "rule_required")
    quota = max(-(-n // 3), round(n * needed.height / max(frame.height, 1)))
    quota = max(min(quota, needed.height), n - others.height)
    first = level(_supply(needed), quota)
    second = level(_supply(others), n - quota, first)
    chosen = pl.concat([*_take(needed, first), *_take(others, second)]).select(KEY).with_columns(in_main=True)
    marked = frame.join(chosen, on=KEY, how="left", nulls_equal=True, maintain_order="left")
    return marked.with_columns(pl.col("in_main").fill_null(False)).drop("lot")


def _supply(frame: pl.DataFrame) -> list[int]:
    return [frame.filter(pl.col("popularity") == label).height for label in POPULARITY]


def _take(frame: pl.DataFrame, counts: list[int]) -> list[pl.DataFrame]:
    return [frame.filter(pl.col("popularity") == label).head(n) for label, n in zip(POPULARITY, counts, strict=True)]
