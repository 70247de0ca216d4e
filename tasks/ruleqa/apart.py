"""Takes echoes of the questions out of the parts of a split: the same entity pair, the same fact, the fact reversed.

The lots of :mod:`lm_eval_rag.tasks.ruleqa.split` are drawn before, so a held-out fact stays in its part or is dropped.
No training fact becomes a question, and checkpoints that were trained on an earlier version have seen no
question of this one.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from lm_eval_rag.tasks.ruleqa.partners import TRIPLE, reversed_facts
from lm_eval_rag.tasks.ruleqa.split import GROUP, Parts

PAIR = ["subject", "object"]
NAMES = ("documents", "retriever", "generator", "test")


def loops(facts: pl.DataFrame) -> int:
    """The number of facts whose subject is their object."""
    return facts.filter(pl.col("subject") == pl.col("object")).height


def without_loops(parts: Parts) -> Parts:
    """The parts without facts whose subject is their object."""
    kept = {name: getattr(parts, name).filter(pl.col("subject") != pl.col("object")) for name in NAMES}
    return replace(parts, **kept)


def static(parts: Parts, pairs: pl.DataFrame) -> tuple[Parts, dict[str, int]]:
    """Parts of which no two of F_R, F_G and the test facts share an entity pair, in either direction.

    Whole (subject, relation) groups are dropped: of F_R and F_G those that share a pair with a test fact, then of F_R
    those that share one with F_G. The test facts stay, since pairs with many relations, which are the richest in
    evidence, would go first. D loses every fact that states a held-out fact reversed under the relation's partner, so
    that both are held out together.

    Args:
        parts: Result of :func:`lm_eval_rag.tasks.ruleqa.split.static`, without loops.
        pairs: Result of :func:`lm_eval_rag.tasks.ruleqa.partners.partners`.

    Returns:
        The parts, and how many facts were dropped, by reason.
    """
    generator = _unshared(parts.generator, parts.test)
    apart_from_test = _unshared(parts.retriever, parts.test)
    retriever = _unshared(apart_from_test, generator)
    held_out = pl.concat([parts.test, retriever, generator])
    documents = parts.documents.join(reversed_facts(held_out, pairs), on=TRIPLE, how="anti", maintain_order="left")
    counts = {
        "facts of F_R dropped, since a test fact has the entity pair": parts.retriever.height - apart_from_test.height,
        "facts of F_G dropped, since a test fact has the entity pair": parts.generator.height - generator.height,
        "facts of F_R dropped, since F_G has the entity pair": apart_from_test.height - retriever.height,
        "facts of D dropped, since they state a held-out fact reversed": parts.documents.height - documents.height,
    }
    return Parts(documents, retriever, generator, parts.test), counts


def temporal(parts: Parts, asked: pl.DataFrame, pairs: pl.DataFrame) -> tuple[Parts, dict[str, int]]:
    """Parts whose F_R and F_G have no (subject, relation, object) of a question at any time, nor its reverse.

    Args:
        parts: Result of :func:`lm_eval_rag.tasks.ruleqa.split.temporal`.
        asked: The gold facts of the questions, columns ``subject``, ``relation``, ``object``.
        pairs: Result of :func:`lm_eval_rag.tasks.ruleqa.partners.partners`.
    """
    echoes = pl.concat([asked.select(TRIPLE), reversed_facts(asked, pairs)]).unique()
    retriever, generator = (
        facts.join(echoes, on=TRIPLE, how="anti", maintain_order="left") for facts in (parts.retriever, parts.generator)
    )
    reason = "dropped, since a question has the fact at another time, or reversed"
    counts = {
        f"facts of F_R {reason}": parts.retriever.height - retriever.height,
        f"facts of F_G {reason}": parts.generator.height - generator.height,
    }
    return replace(parts, retriever=retriever, generator=generator), counts


def _unshared(facts: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """The facts of the (subject, relation) groups of which no entity pair is in ``others``, in either direction."""
    pairs = pl.concat([others.select(PAIR), others.select(subject="object", object="subject")])
    groups = facts.join(pairs, on=PAIR, how="semi").select(GROUP).unique()
    return facts.join(groups, on=GROUP, how="anti", maintain_order="left")
