"""The tables of a corpus folder: documents, rules, queries and training pairs, with readable names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import polars as pl

from lm_eval_rag.tasks.ruleqa.queries import questions

Names = Mapping[int, str]


def documents(facts: pl.DataFrame, entities: Names) -> pl.DataFrame:
    """``corpus.parquet``: one linearised fact per row; ids are zero-padded, so that they sort in row order."""
    named = facts.sort("time", maintain_order=True).select(
        _named("subject", entities), "relation", _named("object", entities), "time"
    )
    words = pl.format("{} {} {}.", "subject", "relation", "object")
    return named.select(_ids("d", named.height), _dated(words).alias("text"), "subject", "relation", "object", "time")


def rules(bank: pl.DataFrame, inverse: pl.DataFrame | None = None) -> pl.DataFrame:
    """``rules.parquet``: the bank, with identity rules marked ``repeat``; inverse rules, if any, come last, marked."""
    table = bank.with_columns(repeat=pl.col("head") == pl.col("body"))
    if inverse is None:
        return table
    turned = inverse.with_columns(repeat=pl.lit(False), inverse=pl.lit(True))
    return pl.concat([table.with_columns(inverse=pl.lit(False)), turned])


def queries(frame: pl.DataFrame, entities: Names, prefix: str) -> pl.DataFrame:
    """Questions as text: id, text, subject, relation, time, answers, and all other columns."""
    rest = [pl.col(name) for name in frame.columns if name not in ("subject", "relation", "time", "answers")]
    answers = pl.col("answers").list.eval(_named("", entities))
    named = frame.with_columns(_named("subject", entities), answers)
    words = pl.format("what does {} {} ?", "subject", "relation")
    text = _dated(words).alias("text")
    return named.select(_ids(prefix, named.height), text, "subject", "relation", "time", "answers", *rest)


def with_aliases(table: pl.DataFrame, aliases: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Questions whose ``answers`` have the names of all gold objects, then their aliases.

    The new column ``objects`` has one list per gold object: its name, then its aliases.

    Args:
        table: Result of :func:`queries`.
        aliases: Name -> aliases.
    """
    objects = [[[name, *aliases.get(name, ())] for name in names] for names in table["answers"].to_list()]
    flat = [[*(row[0] for row in rows), *(alias for row in rows for alias in row[1:])] for rows in objects]
    answers = pl.Series("answers", [list(dict.fromkeys(row)) for row in flat], dtype=pl.List(pl.String))
    nested = pl.Series("objects", objects, dtype=pl.List(pl.List(pl.String)))
    return table.with_columns(answers, nested)


def pairs(facts: pl.DataFrame, entities: Names, prefix: str) -> pl.DataFrame:
    """F_R or F_G: every question of the held-out facts, with its answers."""
    return queries(questions(facts), entities, prefix)


def checksum(table: pl.DataFrame) -> str:
    """sha256 of the rows as JSON Lines, so that it does not depend on the Parquet writer."""
    return hashlib.sha256(table.write_ndjson().encode()).hexdigest()


def _named(column: str, names: Names) -> pl.Expr:
    return pl.col(column).replace_strict(list(names), list(names.values()), return_dtype=pl.String)


def _ids(prefix: str, n: int) -> pl.Expr:
    width = len(str(max(n - 1, 0)))
    return (pl.lit(prefix) + pl.int_range(n).cast(pl.String).str.zfill(width)).alias("id")


def _dated(words: pl.Expr) -> pl.Expr:
    return pl.when(pl.col("time").is_null()).then(words).otherwise(pl.format("Time {} {}", "time", words))
