"""Slices of the questions: how a document supports the answer, by which rule, and what a look-up alone would do."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from lm_eval_rag.tasks.ruleqa.partners import TRIPLE
from lm_eval_rag.tasks.ruleqa.queries import KEY, marked

SUPPORT = ("direct", "reverse", "rule_required", "other_link", "nowhere")
CONFIDENCE = ("below 0.1", "0.1 to 0.5", "above 0.5")
MANY = 10  # documents, the usual k
DOCUMENTS = (f"at most {MANY}", f"more than {MANY}")
CHANGE = ("stable", "changed")
SEEN = ("unseen", "seen")
VALUES: Mapping[str, tuple[str, ...]] = {  # column -> its values; null where a slice does not apply
    "slice": SUPPORT,
    "rule_confidence": CONFIDENCE,
    "subject_documents": DOCUMENTS,
    "change": CHANGE,
    "seen": SEEN,
}


def with_support(
    frame: pl.DataFrame, documents: pl.DataFrame, bank: pl.DataFrame, inverse: pl.DataFrame, pairs: pl.DataFrame
) -> pl.DataFrame:
    """Add ``slice``, the first that applies, and ``rule_confidence``.

    ``direct``: a document states the subject, the relation and a gold answer, at any time. ``reverse``: a document
    states the gold answer, the relation or its inverse partner, and the subject. ``rule_required``: a document links
    subject and gold answer by the body of a rule of the bank, or reversed by the body of an inverse rule.
    ``other_link``: a document links them in either direction. ``nowhere``: none does.

    ``rule_confidence``, of rule_required questions: the highest confidence of the rules that lead to a gold answer.

    Args:
        frame: Result of :func:`lm_eval_rag.tasks.ruleqa.queries.questions`.
        documents: The facts of D.
        bank: Columns ``head``, ``body``, ``confidence``.
        inverse: The same of inverse rules, ``[y, body, x] leads to [x, head, y]``.
        pairs: Result of :func:`lm_eval_rag.tasks.ruleqa.partners.partners`.
    """
    stated = documents.select(TRIPLE).unique()
    turned = stated.select(pl.col("object").alias("subject"), "relation", pl.col("subject").alias("object"))
    gold = frame.select(*KEY, pl.col("answers").alias("object")).explode("object")
    forward, back = (
        gold.join(links.rename({"relation": "body"}), on=["subject", "object"]) for links in (stated, turned)
    )
    inverses = pl.concat([pairs.select("relation", body="partner"), frame.select("relation", body="relation")]).unique()
    ruled = pl.concat([_reached(forward, bank), _reached(back, inverse)])
    found = {
        "direct": forward.filter(pl.col("relation") == pl.col("body")),
        "reverse": back.join(inverses, on=["relation", "body"], how="semi"),
        "rule_required": ruled,
        "other_link": pl.concat([forward, back]),
    }
    best = ruled.group_by(KEY).agg(pl.col("confidence").max())
    frame = marked(frame, "slice", found, otherwise="nowhere").join(
        best, on=KEY, how="left", nulls_equal=True, maintain_order="left"
    )
    low, middle, high = (pl.lit(label) for label in CONFIDENCE)
    level = pl.when(pl.col("confidence") < 0.1).then(low).when(pl.col("confidence") <= 0.5).then(middle).otherwise(high)
    level = pl.when(pl.col("slice") == "rule_required").then(level)
    return frame.with_columns(rule_confidence=level).drop("confidence")


def _reached(links: pl.DataFrame, rules: pl.DataFrame) -> pl.DataFrame:
    """The links whose body is that of a rule for the question's relation, with the rule's ``confidence``."""
    return links.join(rules.select(pl.col("head").alias("relation"), "body", "confidence"), on=["relation", "body"])


def with_subject_documents(frame: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Add ``subject_documents``: whether more than ``MANY`` documents have the question's subject as subject."""
    sizes = documents.group_by("subject").agg(size=pl.len())
    joined = frame.join(sizes, on="subject", how="left", maintain_order="left")
    few, many = (pl.lit(label) for label in DOCUMENTS)
    label = pl.when(pl.col("size").fill_null(0) > MANY).then(many).otherwise(few)
    return joined.with_columns(subject_documents=label).drop("size")


def with_change(frame: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Add ``change``: ``stable`` if an object of the last facts of (subject, relation) in D is a gold answer.

    If several facts have the last time, one of them is enough. Otherwise, or without such facts, ``changed``: there a
    look-up of the last object is wrong.
    """
    last = documents.filter(pl.col("time") == pl.col("time").max().over("subject", "relation")).select(TRIPLE).unique()
    gold = frame.select(*KEY, pl.col("answers").alias("object")).explode("object")
    return marked(frame, "change", {"stable": gold.join(last, on=TRIPLE, how="semi")}, otherwise="changed")


def with_seen(frame: pl.DataFrame, training: pl.DataFrame, *, temporal: bool) -> pl.DataFrame:
    """Add ``seen``: on temporal sets whether F_R or F_G has a gold fact at any time, on static sets its entity pair.

    Args:
        training: The facts of F_R and F_G.
    """
    gold = frame.select(*KEY, pl.col("answers").alias("object")).explode("object")
    turned = training.rename({"subject": "object", "object": "subject"})
    known = [gold.join(training, on=TRIPLE, how="semi")]
    if not temporal:
        known = [gold.join(facts, on=["subject", "object"], how="semi") for facts in (training, turned)]
    return marked(frame, "seen", {"seen": pl.concat(known)}, otherwise="unseen")
