"""Splits facts into documents, training pairs and test questions.

Temporal graphs keep their official chronological split. Static graphs cannot, because no entity pair of FB15k-237's
official test set occurs in its training set, so no document could support a test question. There, whole
(subject, relation) groups are held out instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from lm_eval_rag.tasks.ruleqa.draw import lots
from lm_eval_rag.tasks.ruleqa.specs import CorpusChoice

GROUP = ["subject", "relation"]


@dataclass(frozen=True, slots=True)
class Parts:
    """Disjoint parts of a graph's facts, columns as in :class:`lm_eval_rag.tasks.ruleqa.graphs.Graph`.

    Args:
        documents: D, used for retrieval and rule mining.
        retriever: Held-out facts behind F_R.
        generator: Held-out facts behind F_G.
        test: Held-out facts behind Q.
    """

    documents: pl.DataFrame
    retriever: pl.DataFrame
    generator: pl.DataFrame
    test: pl.DataFrame


def temporal(facts: pl.DataFrame, *, corpus: CorpusChoice = "train", seed: int = 0) -> Parts:
    """The official split; F_R and F_G are two halves of the validation questions (subject, relation, time).

    Args:
        facts: Facts with ``split`` and ``time``.
        corpus: ``train_valid`` adds the validation facts to D, as the published size of RuleQA-I implies; D then states
            the answers of F_R and F_G.
        seed: Seed of the halves.
    """
    train, valid, test = (facts.filter(pl.col("split") == split) for split in ("train", "valid", "test"))
    first, second = _shares(valid, [*GROUP, "time"], 2, seed=seed, stage="halves")
    documents = train if corpus == "train" else pl.concat([train, valid])
    return Parts(documents, first, second, test)


def static(facts: pl.DataFrame, *, share: float = 0.3, most: int = 5, seed: int = 0) -> Parts:
    """Hold out ``share`` of the eligible (subject, relation) groups, a third each for F_R, F_G and Q.

    Args:
        facts: All splits pooled.
        share: In (0, 1).
        most: A group is eligible if it has at most this many objects, and one of its entity pairs has another relation
            too.
        seed: Seed of the choice.
    """
    pair = ["subject", "object"]
    linked = facts.with_columns(others=pl.len().over(pair) - 1)
    groups = linked.group_by(GROUP).agg(pl.len().alias("objects"), pl.col("others").max())
    eligible = groups.filter((pl.col("objects") <= most) & (pl.col("others") > 0)).select(GROUP)
    chosen = eligible.with_columns(lots(eligible, GROUP, seed=seed, stage="held out")).sort("lot", *GROUP)
    chosen = chosen.head(round(share * eligible.height)).select(GROUP)
    held_out = facts.join(chosen, on=GROUP, how="semi", maintain_order="left")
    documents = facts.join(chosen, on=GROUP, how="anti", maintain_order="left")
    test, retriever, generator = _shares(held_out, GROUP, 3, seed=seed, stage="thirds")
    return Parts(documents, retriever, generator, test)


def _shares(facts: pl.DataFrame, key: list[str], n: int, *, seed: int, stage: str) -> list[pl.DataFrame]:
    """The facts in ``n`` parts with equal numbers of groups by ``key``; a remainder goes to the first parts."""
    groups = facts.select(key).unique()
    groups = groups.with_columns(lots(groups, key, seed=seed, stage=stage)).sort("lot", *key)
    numbered = groups.select(*key, (pl.int_range(pl.len()) % n).alias("share"))
    shared = facts.join(numbered, on=key, how="left", maintain_order="left")
    return [shared.filter(pl.col("share") == i).drop("share") for i in range(n)]
