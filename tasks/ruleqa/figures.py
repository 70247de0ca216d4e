"""The figures of a built set: sizes beside the published ones, slices, and how its parts overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from lm_eval_rag.tasks.ruleqa.partners import TRIPLE
from lm_eval_rag.tasks.ruleqa.queries import POPULARITY
from lm_eval_rag.tasks.ruleqa.slices import SUPPORT, VALUES
from lm_eval_rag.tasks.ruleqa.specs import Spec
from lm_eval_rag.tasks.ruleqa.tables import checksum

Tables = Mapping[str, pl.DataFrame]
TRAINING = ("retriever_train", "generator_train")


def describe(spec: Spec, tables: Tables) -> dict[str, Any]:
    """The tables' part of ``meta.json``."""
    queries, rules = tables["queries"], tables["rules"]
    main = queries.filter("in_main")
    pairs = {name: int(tables[name]["answers"].list.len().sum()) for name in TRAINING}
    ours = {
        "rules": rules.filter(pl.col("head") != pl.col("body")).height,
        "documents": tables["corpus"].height,
        **pairs,
        "queries": main.height,
    }
    published = asdict(spec.published)
    mix = {(part, level): n for part, level, n in main.group_by("slice", "popularity").len().iter_rows()}
    return {
        "statistics": {name: {"ours": ours[name], "published": published[name]} for name in published},
        "counts": {name: table.height for name, table in tables.items()},
        "repeat_rules": int(rules["repeat"].sum()),
        "hard_queries": int(queries["in_hard"].sum()),
        "main_queries": {part: {level: mix.get((part, level), 0) for level in POPULARITY} for part in SUPPORT},
        "slices": _slices(main),
        "overlap": overlap(tables),
        "documents_per_fact": repeats(tables["corpus"]),
        "checksums": {name: checksum(table) for name, table in tables.items()},
    }


def _slices(main: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Column -> value -> number of questions of Q, for the other columns of slices."""
    columns = {name: values for name, values in VALUES.items() if name in main.columns and name != "slice"}
    return {
        name: {value: main.filter(pl.col(name) == value).height for value in values} for name, values in columns.items()
    }


def overlap(tables: Tables) -> dict[str, int]:
    """What is shared -> number of questions of Q that share it with F_R or F_G."""
    gold = tables["queries"].filter("in_main").select("id", "subject", "relation", pl.col("objects").alias("object"))
    gold = gold.explode("object").with_columns(pl.col("object").list.first())
    training = pl.concat([tables[name].select("subject", "relation", object="answers") for name in TRAINING])
    training = training.explode("object")
    turned = training.rename({"subject": "object", "object": "subject"})
    pair = ["subject", "object"]
    shared = {
        "a gold fact (at any time)": gold.join(training, on=TRIPLE, how="semi"),
        "an entity pair": pl.concat([gold.join(facts, on=pair, how="semi") for facts in (training, turned)]),
        "a subject and relation": gold.join(training, on=["subject", "relation"], how="semi"),
    }
    return {name: rows["id"].n_unique() for name, rows in shared.items()}


def repeats(corpus: pl.DataFrame) -> dict[str, float]:
    """Documents per fact without its time; on temporal sets also the share of these facts that hold at the end of D."""
    facts = corpus.group_by(TRIPLE).agg(pl.len().alias("n"), pl.col("time").max())
    end = corpus["time"].max()
    last = {} if end is None else {"last": round(facts.filter(pl.col("time") == end).height / facts.height, 3)}
    return {"mean": round(corpus.height / facts.height, 1), **last}
