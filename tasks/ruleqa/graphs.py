"""Readers of the five knowledge graphs: facts by entity id, with readable names for entities and relations.

Times: ICEWS14 counts hours from 2014-01-01, YAGO years from 1830, WIKI years from 1786 (RE-Net's folders).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from lm_eval_rag.tasks.ruleqa import names, wiki_names
from lm_eval_rag.tasks.ruleqa.aliases import accepted
from lm_eval_rag.tasks.ruleqa.source_files import SPLITS

Fetch = Callable[[str], Path]
NELL_DROPPED = ("latitudelongitude", "atdate")  # their entity pairs have no other relation, so no rule applies
KEY = ["subject", "relation", "object", "time"]


@dataclass(frozen=True, slots=True)
class Graph:
    """A knowledge graph.

    Args:
        facts: Columns ``split`` (train, valid, test), ``subject`` and ``object`` (int64 ids), ``relation`` (a unique
            name), ``time`` (ISO date or year; null if static); distinct rows in file order.
        entities: Entity id -> name; distinct in the normal form of answers.
        dropped: Reason -> number of facts left out while reading.
        aliases: Entity id -> other names that are right answers, for the entities that have any.
        noisy: Entities whose name is only a noisy alias.
        incomplete: Questions (``subject``, ``relation``, ``time``) of which a gold answer has no name.
    """

    facts: pl.DataFrame
    entities: dict[int, str]
    dropped: dict[str, int]
    aliases: dict[int, tuple[str, ...]]
    noisy: frozenset[int]
    incomplete: pl.DataFrame


def icews14(fetch: Fetch) -> Graph:
    """ICEWS14 in the split of TITer and RE-GCN, days of 2014; its names are already readable."""
    raw = _names(fetch("icews14/entity2id.txt"))
    relations = names.unique(_names(fetch("icews14/relation2id.txt")))
    day = pl.lit("2014-01-01").str.to_date() + pl.duration(hours=pl.col("time"))
    return _clean(_temporal(fetch, "icews14", day.dt.strftime("%Y-%m-%d")), _named(raw), relations)


def yago(fetch: Fetch) -> Graph:
    """YAGO in the split of RE-Net, one fact per year."""
    entities = _named({id: names.plain(name) for id, name in _names(fetch("yago/entity2id.txt")).items()})
    relations = {id: names.camel(name) for id, name in _names(fetch("yago/relation2id.txt")).items()}
    return _clean(_temporal(fetch, "yago", _year(1830)), entities, relations)


def wiki(fetch: Fetch) -> Graph:
    """Wikidata12k in the split of RE-Net, one fact per year, without facts of entities that have no name."""
    qids = _names(fetch("wiki/entity2id.txt"))
    labels = wiki_names.read_labels(fetch, qids)
    relations = {int(id): name for _, id, name in (line.split("\t") for line in _lines(fetch("wiki/relation2id.txt")))}
    facts = _temporal(fetch, "wiki", _year(1786))
    subject, object = (pl.col(name).is_in(list(labels.names)) for name in ("subject", "object"))
    kept = facts.filter(subject & object)
    tidy = {id: names.tidy(label) for id, label in labels.names.items()}
    others = {id: [names.tidy(label) for label in row] for id, row in labels.others.items()}
    entities = replace(_named(tidy, lambda id: qids[id], others), noisy=labels.noisy)
    dropped = {"facts of an entity without a name": facts.height - kept.height}
    return _clean(kept, entities, relations, dropped, facts.filter(subject & ~object))


def fb15k237(fetch: Fetch) -> Graph:
    """FB15k-237, all splits; Wikidata's descriptions distinguish entities with the same name."""
    ids = _names(fetch("fb15k237/entity2id.txt"))
    text = dict(line.split("\t") for line in _lines(fetch("fb15k237/entity2text.txt")))
    known = json.loads(fetch(wiki_names.FREEBASE).read_text(encoding="utf-8"))

    def hint(id: int) -> str:
        return names.short(known.get(ids[id], {}).get("description") or "")

    entries = {id: known[mid] for id, mid in ids.items() if mid in known}
    others = {id: [name for name in (entry["label"], *entry["alternatives"]) if name] for id, entry in entries.items()}
    entities = _named({id: names.tidy(text[mid]) for id, mid in ids.items()}, hint, others)
    return _clean(
        _static(fetch, "fb15k237"), entities, names.freebase_relations(_names(fetch("fb15k237/relation2id.txt")))
    )


def nell995(fetch: Fetch) -> Graph:
    """NELL-995, all splits, without ``NELL_DROPPED``; categories distinguish entities with the same name."""
    raw = {id: names.nell_entity(name) for id, name in _names(fetch("nell995/entity2id.txt")).items()}
    relations = {id: name.removeprefix("concept:") for id, name in _names(fetch("nell995/relation2id.txt")).items()}
    facts = _static(fetch, "nell995")
    out = pl.col("relation").is_in([id for id, name in relations.items() if name in NELL_DROPPED])
    kept = facts.filter(~out)
    used = set(kept["subject"]) | set(kept["object"])
    entities = _named({id: raw[id][0] for id in sorted(used)}, lambda id: raw[id][1])
    spelled = {id: names.segment(name) for id, name in relations.items()}
    return _clean(kept, entities, spelled, {f"facts of {', '.join(NELL_DROPPED)}": facts.height - kept.height})


@dataclass(frozen=True, slots=True)
class _Entities:
    """Names and aliases by id, and the entities whose name is only a noisy alias."""

    names: dict[int, str]
    aliases: dict[int, tuple[str, ...]]
    noisy: frozenset[int] = frozenset()


def _named(
    raw: dict[int, str], hint: Callable[[int], str] | None = None, others: Mapping[int, Iterable[str]] | None = None
) -> _Entities:
    """Distinct names with their aliases."""
    distinct = names.unique(raw, hint)
    return _Entities(distinct, accepted(distinct, raw, others))


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _names(path: Path) -> dict[int, str]:
    """Id -> raw name, from lines of name, tab, id and maybe more; the line without tab, the count, is skipped."""
    rows = (line.split("\t") for line in _lines(path))
    return {int(row[1]): " ".join(row[0].split()) for row in rows if len(row) > 1}


def _year(first: int) -> pl.Expr:
    return (pl.col("time") + first).cast(pl.String)


def _temporal(fetch: Fetch, folder: str, time: pl.Expr) -> pl.DataFrame:
    """The three splits in RE-Net's format: subject, relation, object, time, unused column."""
    columns = [*KEY, "unused"]
    frames = [
        pl.read_csv(fetch(f"{folder}/{split}.txt"), separator="\t", has_header=False, new_columns=columns)
        for split in SPLITS
    ]
    return _stack(frames).select("split", *KEY).with_columns(time=time)


def _static(fetch: Fetch, folder: str) -> pl.DataFrame:
    """The three splits in OpenKE's format: a count, then head, tail, relation."""
    columns = ["subject", "object", "relation"]
    frames = [
        pl.read_csv(
            fetch(f"{folder}/{split}2id.txt"), separator=" ", has_header=False, skip_rows=1, new_columns=columns
        )
        for split in SPLITS
    ]
    return _stack(frames).with_columns(time=pl.lit(None, pl.String))


def _stack(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The splits concatenated, with a column ``split``."""
    return pl.concat([frame.with_columns(split=pl.lit(split)) for split, frame in zip(SPLITS, frames, strict=True)])


def _clean(
    facts: pl.DataFrame,
    entities: _Entities,
    relations: dict[int, str],
    dropped: dict[str, int] | None = None,
    unnamed: pl.DataFrame | None = None,
) -> Graph:
    """Name the relations, and drop repeated facts within and across splits; the first one is kept.

    Args:
        unnamed: Facts of which the object alone has no name.
    """
    kept = facts.unique(KEY, keep="first", maintain_order=True)
    named = pl.col("relation").replace_strict(list(relations), list(relations.values()), return_dtype=pl.String)
    lost = {**(dropped or {}), "repeated facts": facts.height - kept.height}
    incomplete = (facts.clear() if unnamed is None else unnamed).select("subject", named, "time").unique()
    kept = kept.select("split", "subject", named, "object", "time")
    return Graph(kept, entities.names, lost, entities.aliases, entities.noisy, incomplete)


READERS: dict[str, Callable[[Fetch], Graph]] = {
    "icews14": icews14,
    "yago": yago,
    "wiki": wiki,
    "fb15k237": fb15k237,
    "nell995": nell995,
}
