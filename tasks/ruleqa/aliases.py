"""Further names that count as right answers: other names in public files, and names without their note in parentheses.

Two names are the same if scoring takes them for the same (:func:`lm_eval_rag.harness.scoring.normalise.normalise`). An
alias is never the name of another entity, so no retrieved fact about another entity becomes evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from lm_eval_rag.harness.scoring.normalise import normalise

NOTE = re.compile(r"\s+\([^()]*\)$")
Aliases = Mapping[int, tuple[str, ...]]


def bare(name: str) -> str:
    """A name without the note in parentheses at its end: ``Forward (football position)`` becomes Forward."""
    return NOTE.sub("", name)


def accepted(
    names: Mapping[int, str],
    originals: Mapping[int, str] | None = None,
    others: Mapping[int, Iterable[str]] | None = None,
) -> dict[int, tuple[str, ...]]:
    """Entity id -> its aliases, for the entities that have any.

    - An original name, before we added a note or number. Several entities may have it: the note is ours.
    - A name without a note of the source's own, if no other entity's name without note is the same.
    - Other names, if no other entity has them.

    Args:
        names: Entity id -> name, as in the documents.
        originals: Entity id -> name before names were made distinct.
        others: Entity id -> other names.
    """
    originals, others = originals or names, others or {}
    taken = {normalise(name) for name in names.values()}
    bases = Counter(normalise(bare(original)) for original in originals.values())
    known = Counter(alias for id, aliases in others.items() for alias in {*map(normalise, aliases)} if id in names)
    result: dict[int, tuple[str, ...]] = {}
    for id, name in names.items():
        original = originals.get(id, name)
        chosen = [original] if original != name else []
        chosen += [bare(original)] if original != bare(original) and bases[normalise(bare(original))] == 1 else []
        chosen += [other for other in others.get(id, ()) if known[normalise(other)] == 1]
        distinct = {normalise(alias): alias for alias in reversed(chosen) if normalise(alias) not in taken}
        if distinct:
            result[id] = tuple(reversed(distinct.values()))
    return result


def shared(aliases: Aliases) -> frozenset[int]:
    """The entities with an alias that another entity has too."""
    counts = Counter(normalise(alias) for names in aliases.values() for alias in names)
    return frozenset(id for id, names in aliases.items() if any(counts[normalise(alias)] > 1 for alias in names))


def renamed(aliases: Aliases, old: Mapping[int, str], new: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
    """The aliases of renamed entities: the new name without its note, where the old name without its note was one.

    Aliases of other words are left out: an invented word has no synonym.
    """
    return {id: (bare(new[id]),) for id, names in aliases.items() if bare(old[id]) in names and bare(new[id])}
