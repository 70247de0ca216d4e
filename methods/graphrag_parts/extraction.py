"""Entities and relations of text units, as the model writes them (sections 3.1.2), read with patience."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, TooLongError
from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.preparing import check_failures, for_each
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.methods.graphrag_parts.records import Unit
from lm_eval_rag.methods.prompts.worded import Wording
from lm_eval_rag.methods.reasoning.rationales import lines
from lm_eval_rag.methods.reasoning.steps import STOP

FIELDS = re.compile(r"\s*(?:<\|>|\||\t)\s*")
AROUND = " \"'*`"  # signs that models put around records and fields, beside pairs of brackets
PAIRS = dict(zip("([{<", ")]}>", strict=True))
STRENGTH = re.compile(r"(?:strength\W*)?(\d+(?:\.\d+)?)(?:\s*/\s*10)?", re.IGNORECASE)
LONGEST = 200  # characters of a name
DEEPEST = 4  # pairs of brackets and quotes around a field
NOTHING = {"none", "nothing", "no missing records"}


@dataclass(frozen=True, slots=True)
class Named:
    """An entity as one unit names it."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Stated:
    """A relation as one unit states it; ``strength`` is from 1 to 10, 1 if the model gives none."""

    source: str
    target: str
    description: str
    strength: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """What one unit says, and how many lines of the model could not be read."""

    entities: tuple[Named, ...] = ()
    relations: tuple[Stated, ...] = ()
    malformed: int = 0


def extracted(
    units: Sequence[Unit], wording: Mapping[str, Wording], types: str, gleanings: int, tokens: int, notes: Counter[str]
) -> Plan[list[Extracted]]:
    """What each unit says, in their order.

    Args:
        gleanings: How often the model is asked for what it has missed.
        notes: Gets ``extraction failed``, ``gleaning failed``, ``unit without records`` and ``malformed record``.

    Raises:
        CallError: More calls have failed than :func:`check_failures` allows; a gleaning that does not fit is no such.
    """
    failures: list[CallError] = []

    def read(unit: Unit) -> Plan[str]:
        reply = yield from _written(wording["extract"], tokens, types=types, text=unit.text)
        for _ in range(gleanings):
            texts = {"types": types, "text": unit.text, "known": reply.strip()}
            try:
                reply += "\n" + (yield from _written(wording["glean"], tokens, **texts))
            except CallError as error:  # what the model has written so far stays
                notes["gleaning failed"] += 1
                if not isinstance(error, TooLongError):
                    failures.append(error)
                break
        return reply

    results: list[Extracted] = []
    replies = yield from for_each(units, read)
    check_failures(failures, len(units))
    for reply in replies:
        result = Extracted() if isinstance(reply, CallError) else parsed(reply)
        results.append(result)
        notes["malformed record"] += result.malformed
        if isinstance(reply, CallError):
            notes["extraction failed"] += 1
        elif not result.entities:
            notes["unit without records"] += 1
    return results


def _written(wording: Wording, tokens: int, **texts: Any) -> Plan[str]:
    return generate(wording.prompt(**texts), temperature=0.0, max_tokens=tokens, stop=STOP)


def parsed(reply: str) -> Extracted:
    """The records in a reply. Bullets, brackets, quotes, rows of a table and other separators than ``|`` do no harm.

    A relation also names its ends, without type and description. Lines with words that are no records count as
    malformed, as do records with too few fields, names without letters or of more than 200 characters, and relations of
    a thing with itself.
    """
    entities: list[Named] = []
    relations: list[Stated] = []
    malformed = 0
    for line in lines(reply):
        kind, *fields = map(_bare, FIELDS.split(_bare(line).strip("|")))
        record = READERS.get(kind.casefold(), lambda _: None)(fields)
        if isinstance(record, Named):
            entities.append(record)
        elif isinstance(record, Stated):
            relations.append(record)
        else:
            malformed += any(map(str.isalnum, line)) and _bare(line).strip(".").casefold() not in NOTHING
    ends = (Named(name, "", "") for relation in relations for name in (relation.source, relation.target))
    return Extracted((*entities, *ends), tuple(relations), malformed)


def _entity(fields: Sequence[str]) -> Named | None:
    if len(fields) < 2 or not _is_name(fields[0]):
        return None
    return Named(fields[0], fields[1].casefold(), " ".join(filter(None, fields[2:])))


def _relation(fields: Sequence[str]) -> Stated | None:
    if len(fields) < 2 or not all(map(_is_name, fields[:2])) or same_name(fields[0]) == same_name(fields[1]):
        return None
    rest = list(fields[2:])
    strength = 1.0
    if len(rest) > 1 and (number := STRENGTH.fullmatch(rest[-1])):
        strength = min(10.0, max(1.0, float(number[1])))
        rest.pop()
    return Stated(fields[0], fields[1], " ".join(filter(None, rest)), strength)


READERS = {"entity": _entity, "relation": _relation, "relationship": _relation}


def _is_name(text: str) -> bool:
    return any(map(str.isalnum, text)) and len(text) <= LONGEST


def _bare(text: str) -> str:
    """A record or field without what is around it: quotes, pairs of brackets, brackets that have no partner."""
    text = text.strip(AROUND)
    for _ in range(DEEPEST):
        if not text or (text[0] not in PAIRS and text[-1] not in PAIRS.values()):
            break
        before = text
        for opening, closing in PAIRS.items():
            more = text.count(opening) - text.count(closing)
            if more == 0 and text.startswith(opening) and _closes_last(text, opening, closing):
                text = text[1:-1]
            text = text[min(max(0, more), len(text) - len(text.lstrip(opening))) :]
            text = text[: len(text) - min(max(0, -more), len(text) - len(text.rstrip(closing)))]
        text = text.strip(AROUND)
        if text == before:
            break
    return text


def _closes_last(text: str, opening: str, closing: str) -> bool:
    """Whether the bracket that a text begins with is closed by its last character."""
    depths = accumulate((sign == opening) - (sign == closing) for sign in text)
    return 0 not in islice(depths, len(text) - 1)


def same_name(name: str) -> str:
    """By which names are compared: in any case, with any spaces, in Unicode's normal form (NFKC)."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
