"""Builds a RuleQA set on first use: fetch, read, split, mine rules, add slices, sample, write.

The folder is ``$LM_EVAL_RAG_CACHE/<task>/<hash>``; the hash is of source files, parameters and code version. It is
written under a temporary name and then renamed, so a folder is either complete or absent.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.data.folders import CARD, content_folder, content_hash
from lm_eval_rag.harness.data.sources import Source, fetch, read_manifest
from lm_eval_rag.harness.rules.mining import best_first, mine_static, mine_temporal
from lm_eval_rag.tasks.ruleqa import card, fresh, graphs, queries, split, tables
from lm_eval_rag.tasks.ruleqa.specs import FRESH, Spec, spec_of

logger = logging.getLogger(__name__)

VERSION = 3  # increase it when the built data change; it is part of the folder's hash
CORPORA = ("train", "train_valid")


@dataclass(frozen=True, slots=True)
class Built:
    """The content of a folder: tables by file stem, and the number of facts left out while reading, by reason."""

    tables: dict[str, pl.DataFrame]
    dropped: dict[str, int]


def build(task: str, *, corpus: split.CorpusChoice = "train", seed: int = 0) -> str:
    """The id ``<task>/<hash>`` of the set's folder, which is built if it does not exist.

    Args:
        task: ``ruleqa_i``, ``_y``, ``_w``, ``_f``, ``_n``, or one of these with ``_fresh``.
        corpus: ``train_valid`` adds the validation facts to D (temporal graphs only).
        seed: Seed of the halves, the held-out groups, the sample Q and the fresh names; 0 or more.

    Raises:
        UserError: Unknown task or corpus, an unavailable source, or a damaged folder.
    """
    spec = spec_of(task)
    if corpus not in CORPORA:
        raise unknown("corpus", corpus, CORPORA)
    if corpus != "train" and not spec.temporal:
        raise UserError(f"corpus={corpus!r} is only for temporal sets; {task} pools all splits. Leave it out.")
    at_least("seed", seed, 0)
    manifest = read_manifest(files(__package__) / "sources.toml")
    sources = {path: manifest[path] for path in graphs.FILES[spec.graph]}
    inputs = {
        "task": task,
        "version": VERSION,
        "parameters": {
            "corpus": corpus,
            "seed": seed,
            "bank": spec.bank,
            "min_support": spec.min_support,
            "queries": spec.published.queries,
        },
        "sources": {path: source.sha256 for path, source in sources.items()},
    }

    def write(folder: Path) -> dict[str, Any]:
        logger.info("building %s in %s", task, folder)
        return write_set(folder, _make(spec, task, sources, corpus, seed), spec, inputs, sources)

    return content_folder(task, inputs, write)


def _make(spec: Spec, task: str, sources: dict[str, Source], corpus: split.CorpusChoice, seed: int) -> Built:
    graph = graphs.READERS[spec.graph](lambda path: fetch(sources[path]))
    parts = (
        split.temporal(graph.facts, corpus=corpus, seed=seed) if spec.temporal else split.static(graph.facts, seed=seed)
    )
    bank = _bank(parts.documents, spec)
    questions = queries.with_slices(_askable(parts.test, bank, spec), parts.documents, bank)
    questions = queries.with_popularity(questions, parts.documents)
    questions = queries.drawn(questions, spec.published.queries, seed=seed)
    questions = questions.with_columns(in_hard=pl.col("slice") == "rule_required").filter(
        pl.col("in_main") | pl.col("in_hard")
    )
    entities = graph.entities
    if task.endswith(FRESH):
        entities = fresh.renamed(entities, avoid=graph.facts["relation"].unique(), seed=seed)
    letter = spec.task[-1]
    by_name = {
        "corpus": tables.documents(parts.documents, entities),
        "rules": tables.rules(bank),
        "queries": tables.queries(questions, entities, letter),
        "retriever_train": tables.pairs(parts.retriever, entities, letter + "r"),
        "generator_train": tables.pairs(parts.generator, entities, letter + "g"),
    }
    return Built(by_name, graph.dropped)


def _askable(test: pl.DataFrame, bank: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """The questions of relations with a cross-relation rule; if these are too few for Q, with any rule."""
    crossing = bank.filter(pl.col("head") != pl.col("body"))
    for rules in (crossing, bank):
        questions = queries.questions(test.filter(pl.col("relation").is_in(rules["head"].unique().to_list())))
        if questions.height >= spec.published.queries:
            break
    return questions


def _bank(documents: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """The rules of the bank, best first: cross-relation rules, then identity rules."""
    mined = (mine_temporal if spec.temporal else mine_static)(documents)
    ranked = best_first(mined.filter(pl.col("support") >= spec.min_support))
    crossing = ranked.filter(pl.col("head") != pl.col("body"))
    crossing = crossing.head(crossing.height if spec.bank is None else spec.bank)
    return pl.concat([crossing, ranked.filter(pl.col("head") == pl.col("body"))])


def write_set(
    folder: Path, built: Built, spec: Spec, inputs: dict[str, Any], sources: dict[str, Source]
) -> dict[str, Any]:
    """Write the tables and the card into a folder; return the content of its meta.json."""
    for name, table in built.tables.items():
        table.write_parquet(folder / f"{name}.parquet")
    meta = {**inputs, **card.describe(spec, built.tables), "dropped": built.dropped}
    text = card.text(spec, {**meta, "hash": content_hash(inputs)}, sources)
    (folder / CARD).write_text(text, encoding="utf-8")
    return meta
