"""How a RuleQA set is made: fetch, read, split, take echoes apart, mine rules, add slices, sample, write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from lm_eval_rag.harness.data import fresh_names
from lm_eval_rag.harness.data.folders import CARD, content_hash
from lm_eval_rag.harness.data.sources import Source, fetch
from lm_eval_rag.harness.rules.mining import best_first, mine_static, mine_temporal
from lm_eval_rag.tasks.ruleqa import apart, card, figures, graphs, noise, queries, slices, split, tables
from lm_eval_rag.tasks.ruleqa.aliases import renamed
from lm_eval_rag.tasks.ruleqa.partners import partners
from lm_eval_rag.tasks.ruleqa.specs import FRESH, CorpusChoice, Spec


@dataclass(frozen=True, slots=True)
class Built:
    """The content of a folder.

    Args:
        tables: By file stem.
        counts: Reason -> number, by what is counted: ``dropped`` while reading, ``moved`` between the parts, the
            ``pool`` by slice from which Q is drawn, ``noise`` in the answers of Q.
        partners: Result of :func:`lm_eval_rag.tasks.ruleqa.partners.partners`.
    """

    tables: dict[str, pl.DataFrame]
    counts: dict[str, dict[str, int]]
    partners: pl.DataFrame


def make_set(
    spec: Spec, task: str, sources: dict[str, Source], corpus: CorpusChoice, seed: int, inverse: bool
) -> Built:
    """The content of a set's folder; the arguments are those of :func:`lm_eval_rag.tasks.ruleqa.build.build`."""
    graph = graphs.READERS[spec.graph](lambda path: fetch(sources[path]))
    pairs = partners(graph.facts)
    parts, moved = _parts(graph, spec, pairs, corpus, seed)
    forward, turned = (_bank(parts.documents, spec, inverse=way) for way in (False, True))
    complete, unnamed = _complete(parts.test, graph.incomplete)
    pool = _sliced(_askable(complete, forward, spec, seed), parts.documents, forward, turned, pairs, spec)
    questions = _drawn(pool, spec, seed)
    if spec.temporal:
        gold = questions.select("subject", "relation", pl.col("answers").alias("object")).explode("object")
        parts, dropped = apart.temporal(parts, gold, pairs)
        moved |= dropped
    training = pl.concat([parts.retriever, parts.generator])
    questions = slices.with_seen(questions, training, temporal=spec.temporal)
    if task.endswith(FRESH):
        graph = _renamed(graph, seed)
    by_name = {
        **_named(parts, questions, graph, spec.task[-1]),
        "rules": tables.rules(forward, turned if inverse else None),
    }
    counts = {
        "dropped": graph.dropped,
        "moved": {**moved, **unnamed},
        "pool": {value: pool.filter(pl.col("slice") == value).height for value in slices.SUPPORT},
        "noise": noise.counted(questions.filter("in_main"), graph),
    }
    return Built(by_name, counts, pairs)


def _renamed(graph: graphs.Graph, seed: int) -> graphs.Graph:
    """The graph with invented names."""
    entities = fresh_names.renamed(graph.entities, avoid=graph.facts["relation"].unique(), seed=seed)
    return replace(graph, entities=entities, aliases=renamed(graph.aliases, graph.entities, entities))


def _named(parts: split.Parts, questions: pl.DataFrame, graph: graphs.Graph, letter: str) -> dict[str, pl.DataFrame]:
    """The tables of documents and questions; the ids of questions begin with the set's letter."""
    names = graph.entities
    aliases = {names[id]: others for id, others in graph.aliases.items()}
    return {
        "corpus": tables.documents(parts.documents, names),
        "queries": tables.with_aliases(tables.queries(questions, names, letter), aliases),
        "retriever_train": tables.pairs(parts.retriever, names, letter + "r"),
        "generator_train": tables.pairs(parts.generator, names, letter + "g"),
    }


def _parts(
    graph: graphs.Graph, spec: Spec, pairs: pl.DataFrame, corpus: CorpusChoice, seed: int
) -> tuple[split.Parts, dict[str, int]]:
    """The parts without self-loops; on static sets without shared entity pairs too."""
    facts = graph.facts
    parts = split.temporal(facts, corpus=corpus, seed=seed) if spec.temporal else split.static(facts, seed=seed)
    loops = {"facts dropped, since their subject is their object": apart.loops(facts)}
    parts = apart.without_loops(parts)
    if spec.temporal:
        return parts, loops
    parts, moved = apart.static(parts, pairs)
    return parts, {**loops, **moved}


def _complete(test: pl.DataFrame, incomplete: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """The questions of which every gold answer has a name, and how many others there are."""
    questions = queries.questions(test)
    complete = questions.join(incomplete, on=queries.KEY, how="anti", nulls_equal=True, maintain_order="left")
    return complete, {"questions left out, since a gold answer has no name": questions.height - complete.height}


def _askable(questions: pl.DataFrame, bank: pl.DataFrame, spec: Spec, seed: int) -> pl.DataFrame:
    """The questions of relations with a cross-relation rule; if these are too few for Q, with any rule.

    Where the set has one question of each (subject, relation), all others are left out.
    """
    crossing = bank.filter(pl.col("head") != pl.col("body"))
    for rules in (crossing, bank):
        chosen = questions.filter(pl.col("relation").is_in(rules["head"].unique().to_list()))
        chosen = queries.one_each(chosen, seed=seed) if spec.one_each else chosen
        if chosen.height >= spec.published.queries:
            break
    return chosen


def _sliced(
    pool: pl.DataFrame,
    documents: pl.DataFrame,
    bank: pl.DataFrame,
    turned: pl.DataFrame,
    pairs: pl.DataFrame,
    spec: Spec,
) -> pl.DataFrame:
    """The questions with all slices but ``seen``, which depends on the choice of Q."""
    pool = slices.with_support(pool, documents, bank, turned, pairs)
    pool = slices.with_subject_documents(queries.with_popularity(pool, documents), documents)
    return slices.with_change(pool, documents) if spec.temporal else pool


def _drawn(pool: pl.DataFrame, spec: Spec, seed: int) -> pl.DataFrame:
    """The questions of Q and of the variants, with the columns ``in_main``, ``in_hard`` and maybe ``in_dense``."""
    variants = {"in_hard": pl.col("slice") == "rule_required"}
    if spec.dense:
        variants["in_dense"] = pl.col("subject_documents") == slices.DOCUMENTS[1]
    questions = queries.drawn(pool, spec.published.queries, seed=seed).with_columns(**variants)
    return questions.filter(pl.any_horizontal("in_main", *variants))


def _bank(documents: pl.DataFrame, spec: Spec, *, inverse: bool = False) -> pl.DataFrame:
    """The rules of the bank, best first: cross-relation rules, then identity rules; or as many inverse rules."""
    mined = (mine_temporal if spec.temporal else mine_static)(documents, inverse=inverse)
    ranked = best_first(mined.filter(pl.col("support") >= spec.min_support))
    identity = (pl.col("head") == pl.col("body")) & (not inverse)
    crossing = ranked.filter(~identity)
    crossing = crossing.head(crossing.height if spec.bank is None else spec.bank)
    return pl.concat([crossing, ranked.filter(identity)])


def write_set(
    folder: Path, built: Built, spec: Spec, inputs: dict[str, Any], sources: dict[str, Source]
) -> dict[str, Any]:
    """Write the tables and the card into a folder; return the content of its meta.json."""
    for name, table in built.tables.items():
        table.write_parquet(folder / f"{name}.parquet")
    meta = {**inputs, **figures.describe(spec, built.tables), **built.counts, "partners": built.partners.to_dicts()}
    text = card.text(spec, {**meta, "hash": content_hash(inputs)}, sources)
    (folder / CARD).write_text(text, encoding="utf-8")
    return meta
