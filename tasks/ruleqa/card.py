"""The statistics of a built set, and its dataset card: numbers compared with the paper's, departures, terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from lm_eval_rag.harness.common.card_table import card_table
from lm_eval_rag.harness.data.sources import Source
from lm_eval_rag.tasks.ruleqa.queries import POPULARITY, SLICES
from lm_eval_rag.tasks.ruleqa.specs import FRESH, Spec
from lm_eval_rag.tasks.ruleqa.tables import checksum

ALL = (
    "Rules have length 1 and are mined exactly, from D only. The paper's rule bank is different.",
    "The gold answers of a question are all objects of the held-out facts with its subject, relation and time.",
    "Entities with the same name are distinguished by a note or a number in parentheses.",
)
TEMPORAL = (
    "D contains the training facts. The published size of RuleQA-I's D equals training plus validation facts; "
    "`corpus=train_valid` builds this D, which then states the answers of F_R and F_G.",
    "F_R and F_G are two halves of the validation questions; Q is sampled from the test facts.",
)
STATIC = (
    "No entity pair of FB15k-237's official test set occurs in its training set, in either direction, so no document "
    "could support a test question. Therefore all splits are pooled. A (subject, relation) group is eligible if it has "
    "at most 5 objects and one of its entity pairs has another relation too. 30 % of the eligible groups are held out, "
    "a third each for Q, F_R and F_G. D is the rest; no document has a held-out subject and relation.",
)
FEW = (
    "The bank contains every rule with a support of at least 2, including identity rules. Rules of length 1 are fewer "
    "than the published number. There are too few rule_required questions for a claim about rules.",
)
BY_GRAPH: Mapping[str, tuple[str, ...]] = {
    "icews14": (*TEMPORAL, "Identity rules come after the bank's 557 rules and are marked `repeat`."),
    "yago": (
        *TEMPORAL,
        *FEW,
        "Cross-relation rules have too few questions for Q, so questions with identity rules are used too.",
    ),
    "wiki": (
        *TEMPORAL,
        *FEW,
        "The names of Q-ids are from three public files, in this order: LiterallyWikidata, FB15k-237's "
        "entity2wikidata, ECOLA. ECOLA's names are noisy lower-case aliases. Facts of an entity without a name are "
        "left out.",
    ),
    "fb15k237": (
        *STATIC,
        "A relation's name is the last part of its Freebase path, with type and domain if two names would be equal.",
    ),
    "nell995": (
        *STATIC,
        "Left out: latitudelongitude (coordinates) and atdate (dates of anything, mostly meaningless). Their entity "
        "pairs have no other relation. proxyfor and mutualproxyfor are noisy too, but they are kept, because a quarter "
        "of proxyfor's pairs have another relation.",
        "Categories are removed from entity names, and added in parentheses if two names would be equal.",
    ),
}
RENAMED = (
    "Every entity is renamed: each word in entity names is replaced by an invented word, the same one everywhere. "
    "Relations, times, slices and the order of all rows are the same as in {}."
)


def describe(spec: Spec, tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """The tables' part of ``meta.json``: our statistics and the published ones, slices of Q, checksums."""
    queries, rules = tables["queries"], tables["rules"]
    main = queries.filter("in_main")
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
        "hard_queries": int(queries["in_hard"].sum()),
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
        f"RuleQA (arXiv:2410.22353, table 1), rebuilt from public files. Folder `{meta['task']}/{meta['hash']}`, code "
        f"version {meta['version']}, parameters {meta['parameters']}.",
        "## Numbers\n\nFor training sets, the number of (question, gold answer) pairs. For rules, the number of "
        f"cross-relation rules; there are also {meta['repeat_rules']} identity rules.",
        card_table(("", "here", "published"), statistics),
        f"Questions of Q by slice and popularity of the answer. The whole test part, in Q or not, has "
        f"{meta['hard_queries']} rule_required questions.",
        card_table(("slice", *POPULARITY), mix),
        "## Departures from the paper\n\n" + "\n".join(f"- {line}" for line in (*ALL, *BY_GRAPH[spec.graph], *fresh)),
        "Left out while reading: " + "; ".join(f"{n} {reason}" for reason, n in meta["dropped"].items()) + ".",
        "## Sources, licences and terms\n\nThe data are subject to the terms of their sources.",
        card_table(("file", "licence", "terms", "sha256"), files),
    ]
    return "\n\n".join(parts) + "\n"
