"""A built RuleQA set as tables, and the look-ups that scripts/audit_ruleqa.py measures on it, written anew."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

K = 10
TRIPLE = ["subject", "relation", "object"]
FIRST = pl.col("object").first().alias("prediction")


@dataclass(frozen=True)
class Audited:
    """A built set.

    Args:
        folder: With ``corpus.parquet`` and so on.
    """

    folder: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "meta.json").read_text(encoding="utf-8")))

    @cached_property
    def corpus(self) -> pl.DataFrame:
        return pl.read_parquet(self.folder / "corpus.parquet")

    @cached_property
    def all_questions(self) -> pl.DataFrame:
        """The questions with their gold objects in ``golds``, without aliases."""
        table = pl.read_parquet(self.folder / "queries.parquet")
        names = pl.col("objects").list.eval(pl.element().list.first()) if "objects" in table.columns else "answers"
        return table.with_columns(golds=names)

    @cached_property
    def questions(self) -> pl.DataFrame:
        """Q."""
        return self.all_questions.filter("in_main")

    @cached_property
    def hard(self) -> pl.DataFrame:
        return self.all_questions.filter("in_hard")

    @cached_property
    def training(self) -> pl.DataFrame:
        """The facts of F_R and F_G: subject, relation, object."""
        tables = [pl.read_parquet(self.folder / f"{name}_train.parquet") for name in ("retriever", "generator")]
        rows = pl.concat([table.select("subject", "relation", object="answers") for table in tables])
        return rows.explode("object")

    @cached_property
    def facts(self) -> pl.DataFrame:
        """The facts of D without their times, each once."""
        return self.corpus.select(TRIPLE).unique()

    @property
    def temporal(self) -> bool:
        return self.corpus["time"].null_count() == 0

    def gold(self, questions: pl.DataFrame) -> pl.DataFrame:
        """One row per gold object: id, subject, relation, object."""
        return questions.select("id", "subject", "relation", object="golds").explode("object")


def turned(facts: pl.DataFrame) -> pl.DataFrame:
    """The facts with subject and object exchanged."""
    return facts.rename({"subject": "object", "object": "subject"})


# Look-ups: a table of questions -> a prediction for each, null where the look-up finds nothing.
def most_frequent(facts: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """The most frequent object of each key, ties by name."""
    counts = facts.group_by(*key, "object").len().sort("len", "object", descending=[True, False])
    return counts.group_by(key, maintain_order=True).agg(FIRST)


def mode_of_relation(one: Audited) -> pl.Series:
    """The relation's most frequent object."""
    table = most_frequent(one.corpus, ["relation"])
    return one.questions.join(table, on="relation", how="left", maintain_order="left")["prediction"]


def mode_of_subject(one: Audited) -> pl.Series:
    """The subject's most frequent object, by any relation."""
    table = most_frequent(one.corpus, ["subject"])
    return one.questions.join(table, on="subject", how="left", maintain_order="left")["prediction"]


def last_object(one: Audited) -> pl.Series:
    """The object of the last fact of (subject, relation), ties by frequency, then by name."""
    key = ["subject", "relation"]
    counts = one.corpus.group_by(*TRIPLE).agg(pl.len(), pl.col("time").max())
    ordered = counts.sort("time", "len", "object", descending=[True, True, False], nulls_last=True)
    table = ordered.group_by(key, maintain_order=True).agg(FIRST)
    return one.questions.join(table, on=key, how="left", maintain_order="left")["prediction"]


def link_vote(one: Audited) -> pl.Series:
    """The entity most often linked to the subject that is an object of the relation; else the relation's mode.

    Ties go to the more frequent object of the relation, then by name.
    """
    links = pl.concat([one.corpus.select("subject", "object"), turned(one.corpus).select("subject", "object")])
    asked = one.questions.select("id", "subject", "relation")
    sizes = links.join(asked, on="subject", how="semi").group_by("subject", "object").len()
    ranged = one.corpus.group_by("relation", "object").agg(frequency=pl.len())
    votes = asked.join(sizes, on="subject").join(ranged, on=["relation", "object"])
    ordered = votes.sort("len", "frequency", "object", descending=[True, True, False])
    table = ordered.group_by("id", maintain_order=True).agg(FIRST)
    linked = one.questions.join(table, on="id", how="left", maintain_order="left")["prediction"]
    return linked.zip_with(linked.is_not_null(), mode_of_relation(one))


def copy_subject(one: Audited) -> pl.Series:
    """The subject itself."""
    return one.questions["subject"].alias("prediction")


def copy_vote(one: Audited) -> pl.Series:
    """The subject's most frequent object in the question's first ten documents of BM25, ties by rank."""
    from lm_eval_rag.harness.data.corpus import open_corpus
    from lm_eval_rag.harness.retrieval.bm25 import BM25

    corpus = open_corpus(str(one.folder))
    hits = BM25(corpus).search(one.questions["text"].to_list(), K)
    predictions: list[str | None] = []
    for subject, ranked in zip(one.questions["subject"], hits, strict=True):
        facts = [corpus.passage(*hit).fact for hit in ranked]
        votes = Counter(fact[2] for fact in facts if fact and fact[0] == subject)
        predictions.append(max(votes, key=lambda name: votes[name]) if votes else None)
    return pl.Series("prediction", predictions, dtype=pl.String)


LOOKUPS: dict[str, Callable[[Audited], pl.Series]] = {
    lookup.__name__: lookup for lookup in (mode_of_relation, mode_of_subject, last_object, link_vote)
}
