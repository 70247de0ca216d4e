"""Takes echoes of the questions out of the parts of a split: the same entity pair, the same fact, the fact reversed.

The lots of :mod:`lm_eval_rag.tasks.ruleqa.split` are drawn before, so a held-out fact stays in its part, joins D, or is
dropped. No training fact becomes a question, and checkpoints that were trained on an earlier version have seen no
question of this one.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from lm_eval_rag.tasks.ruleqa.partners import TRIPLE, reversed_facts
from lm_eval_rag.tasks.ruleqa.split import GROUP, Parts

PAIR = ["first", "second"]
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

    Whole (subject, relation) groups move to D: of the test facts those that share a pair with F_R or F_G, then of F_R
    those that share one with F_G. Then D loses every fact that states a held-out fact reversed under the relation's
    partner, so that both are held out together.

    Args:
        parts: Result of :func:`lm_eval_rag.tasks.ruleqa.split.static`, without loops.
        pairs: Result of :func:`lm_eval_rag.tasks.ruleqa.partners.partners`.

    Returns:
        The parts, and how many facts were moved or dropped, by reason.
    """
    retriever, generator = _paired(parts.retriever), _paired(parts.generator)
    test, known = _sharing(_paired(parts.test), pl.concat([retriever, generator]))
    retriever, shared = _sharing(retriever, generator)
    moved = [frame.drop(PAIR) for frame in (known, shared)]
    documents = pl.concat([parts.documents, *moved])
    test, retriever = test.drop(PAIR), retriever.drop(PAIR)
    held_out = pl.concat([test, retriever, parts.generator])
    kept = documents.join(reversed_facts(held_out, pairs), on=TRIPLE, how="anti", maintain_order="left")
    counts = {
        "test facts that moved to D, since their entity pair is in F_R or F_G": known.height,
        "facts of F_R that moved to D, since their entity pair is in F_G": shared.height,
        "facts of D dropped, since they state a held-out fact reversed": documents.height - kept.height,
    }
    return Parts(kept, retriever, parts.generator, test), counts


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


def _paired(facts: pl.DataFrame) -> pl.DataFrame:
    """The facts with the entity pair without its direction, in ``PAIR``."""
    return facts.with_columns(
        first=pl.min_horizontal("subject", "object"), second=pl.max_horizontal("subject", "object")
    )


def _sharing(facts: pl.DataFrame, others: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The facts of groups that share no entity pair with ``others``, and the facts of those that do."""
    groups = facts.join(others, on=PAIR, how="semi").select(GROUP).unique()
    apart, sharing = (facts.join(groups, on=GROUP, how=how, maintain_order="left") for how in ("anti", "semi"))
    return apart, sharing
