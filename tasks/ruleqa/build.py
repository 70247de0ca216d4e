"""Builds a RuleQA set on first use: fetch, read, split, mine, slice, draw, write.

The folder ``$LM_EVAL_RAG_CACHE/<task>/<hash>`` is named by what it is made from (source files, parameters, version of
this code), written beside its place and then renamed, so that a folder is whole or not there.
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

VERSION = 3  # raise it with every change of what is built: it names the folder
CORPORA = ("train", "train_valid")


@dataclass(frozen=True, slots=True)
class Built:
    """What becomes a folder: tables by file stem, and what was left out on reading."""

    tables: dict[str, pl.DataFrame]
    dropped: dict[str, int]


def build(task: str, *, corpus: split.CorpusChoice = "train", seed: int = 0) -> str:
    """The id ``<task>/<hash>`` of the set's folder, which is built if it is not there yet.

    Args:
        task: ``ruleqa_i``, ``_y``, ``_w``, ``_f``, ``_n``, or one of these with ``_fresh``.
        corpus: ``train_valid`` adds the validation facts to D (temporal graphs only).
        seed: Of the halves, the held-out groups, the draw of Q and the fresh names; 0 or more.

    Raises:
        UserError: Unknown task or corpus, a source that cannot be had, or a damaged folder.
    """
    spec = spec_of(task)
    if corpus not in CORPORA:
        raise unknown("corpus", corpus, CORPORA)
    if corpus != "train" and not spec.temporal:
        raise UserError(f"corpus={corpus!r} is for the temporal sets; {task} pools all splits. Leave it out.")
    at_least("seed", seed, 0)
    manifest = read_manifest(files(__package__) / "sources.toml")
    sources = {path: manifest[path] for path in graphs.FILES[spec.graph]}
    made_from = {
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
        return write_set(folder, _make(spec, task, sources, corpus, seed), spec, made_from, sources)

    return content_folder(task, made_from, write)


def _make(spec: Spec, task: str, sources: dict[str, Source], corpus: split.CorpusChoice, seed: int) -> Built:
    graph = graphs.READERS[spec.graph](lambda path: fetch(sources[path]))
    parts = (
        split.temporal(graph.facts, corpus=corpus, seed=seed) if spec.temporal else split.static(graph.facts, seed=seed)
    )
    bank = _bank(parts.documents, spec)
    asked = queries.with_slices(_askable(parts.test, bank, spec), parts.documents, bank)
    asked = queries.with_popularity(asked, parts.documents)
    asked = queries.drawn(asked, spec.published.queries, seed=seed)
    asked = asked.with_columns(in_hard=pl.col("slice") == "rule_required").filter(pl.col("in_main") | pl.col("in_hard"))
    entities = graph.entities
    if task.endswith(FRESH):
        entities = fresh.renamed(entities, avoid=graph.facts["relation"].unique(), seed=seed)
    letter = spec.task[-1]
    named = {
        "corpus": tables.documents(parts.documents, entities),
        "rules": tables.rules(bank),
        "queries": tables.queries(asked, entities, letter),
        "retriever_train": tables.pairs(parts.retriever, entities, letter + "r"),
        "generator_train": tables.pairs(parts.generator, entities, letter + "g"),
    }
    return Built(named, graph.dropped)


def _askable(test: pl.DataFrame, bank: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """The questions of relations that head a cross-relation rule, or any rule where those are too few for Q."""
    crossing = bank.filter(pl.col("head") != pl.col("body"))
    for rules in (crossing, bank):
        asked = queries.questions(test.filter(pl.col("relation").is_in(rules["head"].unique().to_list())))
        if asked.height >= spec.published.queries:
            break
    return asked


def _bank(documents: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """The rules of the bank, best first: those that cross relations, then identities."""
    mined = (mine_temporal if spec.temporal else mine_static)(documents)
    ranked = best_first(mined.filter(pl.col("support") >= spec.min_support))
    crossing = ranked.filter(pl.col("head") != pl.col("body"))
    crossing = crossing.head(crossing.height if spec.bank is None else spec.bank)
    return pl.concat([crossing, ranked.filter(pl.col("head") == pl.col("body"))])


def write_set(
    folder: Path, built: Built, spec: Spec, made_from: dict[str, Any], sources: dict[str, Source]
) -> dict[str, Any]:
    """Write the tables and the card into a folder; returns its meta.json."""
    for name, table in built.tables.items():
        table.write_parquet(folder / f"{name}.parquet")
    meta = {**made_from, **card.describe(spec, built.tables), "dropped": built.dropped}
    said = card.text(spec, {**meta, "hash": content_hash(made_from)}, sources)
    (folder / CARD).write_text(said, encoding="utf-8")
    return meta
