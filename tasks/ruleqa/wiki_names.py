"""Names for the Q-ids of WIKI, from three public files, without guessing.

LiterallyWikidata's English labels come first, then the labels in FB15k-237's entity2wikidata, then ECOLA's names
(arXiv:2203.09590). ECOLA has its own entity numbers and no Q-ids. But its facts are Wikidata12k's, in the same order
and with the same time classes; only facts of entities without a name and facts that end before they begin are missing.
So both lists can be aligned fact by fact, which maps every ECOLA entity to its Wikidata12k id.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Fetch = Callable[[str], Path]
Fact = tuple[int, int, int, int, int]  # subject, relation, object, first and last time class

LABELS = "wiki/labels/literallywikidata_entity_labels_en.txt"
FREEBASE = "wiki/labels/fb15k237_entity2wikidata.json"
ECOLA = "wiki/labels/ecola_wiki_short_{}.txt"
INTERVALS = "wiki/wikidata12k_interval_{}.txt"
SPLITS = {"train": "train", "valid": "val", "test": "test"}  # Wikidata12k's name -> ECOLA's name
FULL = 300  # a time class of HyTE ends with the year in which it reaches this many mentions
LAST = 81  # the last time class of ECOLA, also for facts without an end; facts without a start have class 0
FILES = (
    LABELS,
    FREEBASE,
    ECOLA.format("entities2id"),
    *(ECOLA.format(split) for split in SPLITS.values()),
    *(INTERVALS.format(split) for split in SPLITS),
)


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of WIKI's entities by id.

    Args:
        names: The name from the first file that has one.
        others: The names from the files after it.
        noisy: Entities whose only name is ECOLA's, a lower-case alias.
    """

    names: dict[int, str]
    others: dict[int, tuple[str, ...]]
    noisy: frozenset[int]


def read_labels(fetch: Fetch, qids: dict[int, str]) -> Labels:
    """The names in the three files, for the entities with a name in any of them."""
    english = dict(line.split("\t") for line in _lines(fetch(LABELS)))
    freebase = {
        entry["wikidata_id"]: (entry["label"], *entry["alternatives"])
        for entry in json.loads(fetch(FREEBASE).read_text(encoding="utf-8")).values()
    }
    ecola = aligned(fetch)
    rows = {id: (english.get(qid), *freebase.get(qid, ()), ecola.get(id)) for id, qid in qids.items()}
    tidy = {id: [" ".join(name.split()) for name in row if name] for id, row in rows.items()}
    noisy = frozenset(id for id, row in rows.items() if row[-1] and not any(row[:-1]))
    names = {id: row[0] for id, row in tidy.items() if row}
    return Labels(names, {id: tuple(row[1:]) for id, row in tidy.items() if row[1:]}, noisy)


def labels(fetch: Fetch, qids: dict[int, str]) -> dict[int, str]:
    """Entity id -> name, for the entities with a name in any of the three files."""
    return read_labels(fetch, qids).names


def aligned(fetch: Fetch) -> dict[int, str]:
    """Wikidata12k's entity id -> ECOLA's name.

    Raises:
        ValueError: A fact of ECOLA has no counterpart.
    """
    rows = {split: [line.split("\t") for line in _lines(fetch(INTERVALS.format(split)))] for split in SPLITS}
    classes = _classes(year for split in rows.values() for row in split for year in map(_year, row[3:5]))
    ours: dict[tuple[str, int], int] = {}  # ("entity" or "relation", Wikidata12k's id) -> ECOLA's id
    theirs: dict[tuple[str, int], int] = {}

    def fits(fact: Fact, other: Fact) -> bool:
        pairs = list(_pairs(fact, other))
        same = all(ours.get((kind, a), b) == b and theirs.get((kind, b), a) == a for kind, a, b in pairs)
        return same and fact[3:] == other[3:]

    for split, other_split in SPLITS.items():
        facts = iter([_fact(row, classes) for row in rows[split]])
        for other in _intervals(fetch(ECOLA.format(other_split))):
            fact = next((fact for fact in facts if fits(fact, other)), None)
            if fact is None:
                raise ValueError(f"ECOLA's {other_split} fact {other} has no counterpart in Wikidata12k")
            for kind, a, b in _pairs(fact, other):
                ours[kind, a], theirs[kind, b] = b, a
    rows_of_names = (line.split("\t") for line in _lines(fetch(ECOLA.format("entities2id"))))
    names = {int(id): name for name, id in rows_of_names}
    return {id: names[other] for (kind, id), other in ours.items() if kind == "entity"}


def _pairs(fact: Fact, other: Fact) -> Iterator[tuple[str, int, int]]:
    yield "entity", fact[0], other[0]
    yield "relation", fact[1], other[1]
    yield "entity", fact[2], other[2]


def _year(date: str) -> int | None:
    """The year of ``1926-##-##`` or ``918-##-##``; None for ``####-##-##``."""
    year = date.rsplit("-", 2)[0]
    return int(year) if year.isdigit() else None


def _classes(years: Iterator[int | None]) -> dict[int, int]:
    """Year -> time class, by the number of mentions of each year."""
    counts = Counter(year for year in years if year is not None)
    classes, number, mentions = {}, 0, 0
    for year in sorted(counts):
        classes[year] = min(number, LAST)
        mentions += counts[year]
        if mentions >= FULL:
            number, mentions = number + 1, 0
    return classes


def _fact(row: list[str], classes: dict[int, int]) -> Fact:
    first, last = map(_year, row[3:5])
    start = 0 if first is None else classes[first]
    return int(row[0]), int(row[1]), int(row[2]), start, LAST if last is None else classes[last]


def _intervals(path: Path) -> list[Fact]:
    """ECOLA's rows (subject, relation, object, class); rows with successive classes are merged into one fact."""
    facts: list[Fact] = []
    for line in _lines(path):
        subject, relation, object, time = map(int, line.split("\t"))
        if facts and (*facts[-1][:3], facts[-1][4] + 1) == (subject, relation, object, time):
            facts[-1] = (subject, relation, object, facts[-1][3], time)
        else:
            facts.append((subject, relation, object, time, time))
    return facts


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
