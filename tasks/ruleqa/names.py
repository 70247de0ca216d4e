"""Readable, distinct names for entities and relations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from lm_eval_rag.harness.scoring.normalise import normalise

ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
QUOTED = re.compile(r'^"(.*)"$')  # a label quoted as in CSV: "George ""Gabby"" Hayes"
LEFTOVER = re.compile(r"(-(GB|US)|/(doc|comments))$")  # suffix of a Freebase locale or a Wikipedia subpage
SENSE = re.compile(r"(?<=[a-z])00\d$")  # NELL's sense numbers, such as john001
NUMERAL = re.compile(r"\bn(?=\d+$)")  # NELL writes the year 1925 as n1925
UPPER = {"tv": "TV", "gdp": "GDP", "gni": "GNI", "ppp": "PPP", "us": "US", "ml": "ML", "ceo": "CEO"}


def plain(name: str) -> str:
    """A readable YAGO name: ``<James_Welch_(writer)>`` becomes James Welch (writer)."""
    text = ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), name.strip("<>"))
    return " ".join(text.replace("_", " ").split())


def tidy(label: str) -> str:
    """A label of WIKI or FB15k-237 without artefacts of its export: ``Teacher-GB`` becomes Teacher."""
    text = LEFTOVER.sub("", " ".join(label.split()))
    return QUOTED.sub(r"\1", text).replace('""', '"') if '""' in text else text


def camel(name: str) -> str:
    """A readable YAGO relation: ``<wasBornIn>`` becomes was born in."""
    return CAMEL.sub(" ", name.strip("<>")).lower()


def nell_entity(name: str) -> tuple[str, str]:
    """Readable NELL entity and category: ``concept_personus_jon_garland`` becomes (jon garland, person US).

    If the name has only underscores, the category is the name. A plain number has no category.
    """
    _, category, *rest = name.split("_") if name.startswith("concept_") else ("", "", name)
    text = " ".join(word for word in rest if word)
    kind = segment(category)
    return NUMERAL.sub("", SENSE.sub("", text)) or kind, kind


@cache
def segment(glued: str) -> str:
    """Splits a compound into the fewest words of our list: ``teamplaysincity`` becomes team plays in city.

    A compound that the list cannot split is unchanged. Ties go to the split with the shortest first word.
    """
    ways: dict[int, tuple[str, ...]] = {len(glued): ()}
    for start in range(len(glued) - 1, -1, -1):
        ends = (end for end in range(start + 1, len(glued) + 1) if end in ways and glued[start:end] in _words())
        splits = [(glued[start:end], *ways[end]) for end in ends]
        if splits:
            ways[start] = min(splits, key=len)
    return " ".join(UPPER.get(word, word) for word in ways.get(0, (glued,)))


@cache
def _words() -> frozenset[str]:
    return frozenset((files(__package__) / "nell_words.txt").read_text(encoding="utf-8").split())


def freebase_relations(paths: Mapping[int, str]) -> dict[int, str]:
    """Readable names of Freebase relation paths, as short as possible but distinct.

    ``/people/person/place_of_birth`` becomes place of birth. If two names would be equal, type and domain are added, as
    in film genre and TV program genre.
    """
    forms = {id: _forms(path) for id, path in paths.items()}
    depth = dict.fromkeys(paths, 0)
    while True:
        chosen = {id: forms[id][depth[id]] for id in paths}
        shared = Counter(name.casefold() for name in chosen.values())
        open_ids = [id for id in paths if shared[chosen[id].casefold()] > 1 and depth[id] + 1 < len(forms[id])]
        if not open_ids:
            return unique(chosen)
        for id in open_ids:
            depth[id] += 1


def _forms(path: str) -> list[str]:
    """Readable forms of a path, shorter ones first; a compound path has two parts joined by a dot."""
    parts = [part.strip("/").split("/") for part in path.split("./")]
    last = [part[-1] for part in parts]
    first = parts[0]
    choices = [last, [first[-2], *last], [*first[-3:-1], *last], [name for part in parts for name in part[-2:]]]
    return [_joined(choice) for choice in [*choices, [name for part in parts for name in part]]]


def _joined(names: Iterable[str]) -> str:
    """Names joined without repetition: award, award_winner becomes award winner."""
    row: list[str] = []
    for name in names:
        words = re.sub(r"_s\b", "s", name).split("_")
        overlap = next(n for n in range(min(len(row), len(words)), -1, -1) if _alike(row[len(row) - n :], words[:n]))
        row += words[overlap:]
    return " ".join(UPPER.get(word, word) for word in row)


def _alike(first: Sequence[str], second: Sequence[str]) -> bool:
    return [word.removesuffix("s") for word in first] == [word.removesuffix("s") for word in second]


def short(description: str) -> str:
    """The first clause of a description, at most eight words."""
    return " ".join(re.split(r"[,;(]", description)[0].split()[:8])


def unique(names: Mapping[int, str], hint: Callable[[int], str] | None = None) -> dict[int, str]:
    """The names, made distinct in the normal form in which answers are compared.

    A repeated name gets its hint in parentheses, such as ``Philadelphia (1993 film by Jonathan Demme)``. If names are
    still equal or have no hint, they get a number in the order of ids: ``Forward``, ``Forward (2)``.
    """
    shared = Counter(normalise(name) for name in names.values())
    distinct, taken = dict(names), set[str]()
    for id in sorted(names):
        extra = hint(id) if hint and shared[normalise(names[id])] > 1 else ""
        base = f"{names[id]} ({extra})" if extra else names[id]
        distinct[id], number = base, 1
        while normalise(distinct[id]) in taken:
            number += 1
            distinct[id] = f"{base} ({number})"
        taken.add(normalise(distinct[id]))
    return distinct
