"""The statistics of a built set and its dataset card: contents, terms, numbers beside the paper's, departures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from lm_eval_rag.harness.data.sources import Source
from lm_eval_rag.tasks.ruleqa.queries import POPULARITY, SLICES
from lm_eval_rag.tasks.ruleqa.specs import FRESH, Spec
from lm_eval_rag.tasks.ruleqa.tables import checksum

ALL = (
    "Rules have length 1 and are mined here, exactly, on D alone; the paper's bank is not the same.",
    "A question asks for all objects of the held-out facts with its subject, relation and time; each is a gold answer.",
    "Entities of one name are told apart by a note or a number in parentheses.",
)
TEMPORAL = (
    "D holds the training facts. The published size of RuleQA-I's D is exactly training plus validation facts: "
    "`corpus=train_valid` builds it so, and then D states the answers of F_R and F_G.",
    "F_R and F_G are two halves of the validation questions, Q is drawn from the test facts.",
)
STATIC = (
    "The official test pairs of FB15k-237 share no entity pair with its training set, in either direction, so no "
    "document could support them. Here all splits are pooled, and 30 % of the (subject, relation) groups with at most "
    "5 objects and at least one entity pair that carries another relation are held out: a third each for Q, F_R and "
    "F_G. D is the rest; no document has a held-out subject and relation.",
)
FEW = (
    "The bank holds every rule with support of at least 2, identity rules included. The published number of rules is "
    "out of reach with rules of length 1. rule_required questions are too few to claim anything about rules.",
)
BY_GRAPH: Mapping[str, tuple[str, ...]] = {
    "icews14": (*TEMPORAL, "Identity rules follow the bank's 557 and are marked `repeat`."),
    "yago": (
        *TEMPORAL,
        *FEW,
        "The heads of cross-relation rules give fewer questions than Q needs, so those of identity rules count too.",
    ),
    "wiki": (
        *TEMPORAL,
        *FEW,
        "Q-ids are named by three public files (LiterallyWikidata, FB15k-237's entity2wikidata, ECOLA), in this order. "
        "ECOLA's names are aliases in lower case and noisy. Facts of an entity that none names are left out.",
    ),
    "fb15k237": (
        *STATIC,
        "Relations are named by the last words of their Freebase path, with type and domain where two would be alike.",
    ),
    "nell995": (
        *STATIC,
        "Left out: latitudelongitude (coordinates) and atdate (which dates things of any kind, mostly without sense). "
        "No entity pair of theirs carries another relation. proxyfor and mutualproxyfor are noisy too, and kept: other "
        "relations state a quarter of proxyfor's pairs.",
        "Categories are taken off the names of entities, and put back in parentheses where two would be alike.",
    ),
}
RENAMED = (
    "Every entity is renamed: each word of an entity's name is replaced by one made-up word, the same everywhere. "
    "Relations, times, slices and the order of all rows are those of {}."
)


def describe(spec: Spec, tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """What ``meta.json`` says of the tables: statistics beside the published ones, slices of Q, checksums."""
    asked, rules = tables["queries"], tables["rules"]
    main = asked.filter("in_main")
    pairs = {name: int(tables[name]["answers"].list.len().sum()) for name in ("retriever_train", "generator_train")}
    ours = {
        "rules": int((~rules["repeat"]).sum()),
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
        "hard_queries": int(asked["in_hard"].sum()),
        "main_queries": {part: {level: mix.get((part, level), 0) for level in POPULARITY} for part in SLICES},
        "checksums": {name: checksum(table) for name, table in tables.items()},
    }


def text(spec: Spec, meta: Mapping[str, Any], sources: Mapping[str, Source]) -> str:
    """The dataset card in Markdown."""
    fresh = (RENAMED.format(spec.task),) if meta["task"].endswith(FRESH) else ()
    statistics = [(name, row["ours"], row["published"]) for name, row in meta["statistics"].items()]
    mix = [(part, *row.values()) for part, row in meta["main_queries"].items()]
    files = [
        (f"[{source.path}]({source.url})", source.licence, source.terms, source.sha256) for source in sources.values()
    ]
    parts = [
        f"# {meta['task']}: questions over {spec.title}, with rules",
        f"Rebuilt after RuleQA (arXiv:2410.22353, table 1) from public files; folder `{meta['task']}/{meta['hash']}`, "
        f"code version {meta['version']}, parameters {meta['parameters']}.",
        "## Numbers\n\nPairs count every gold answer once; rules are those that cross relations "
        f"({meta['repeat_rules']} identity rules besides).",
        _table(("", "here", "published"), statistics),
        f"Queries of Q by slice and popularity of the answer; {meta['hard_queries']} questions of the test part, drawn "
        "into Q or not, are rule_required.",
        _table(("slice", *POPULARITY), mix),
        "## Departures from the paper\n\n" + "\n".join(f"- {line}" for line in (*ALL, *BY_GRAPH[spec.graph], *fresh)),
        "Left out on reading: " + "; ".join(f"{n} {what}" for what, n in meta["dropped"].items()) + ".",
        "## Sources, licences and terms\n\nThe data keep the terms of their sources.",
        _table(("file", "licence", "terms", "sha256"), files),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
