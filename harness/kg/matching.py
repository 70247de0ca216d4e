"""Matching names in a question with names in the graph, and dates with the API's form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from difflib import SequenceMatcher
from typing import Any

from lm_eval_rag.harness.kg.names import normal

MOST_NAMES = 5  # in one field of a question
LONGEST = 200  # characters of a name that are compared
LIKE = 0.6  # least of difflib's ratio for a match
WEEKDAY = re.compile(r"\A(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?\b[., ]*", re.IGNORECASE)
CLOCK = re.compile(r"[,\s]+(at\s+)?[0-9]{1,2}(:[0-9]{2}|\s*[ap]m\b).*", re.IGNORECASE | re.DOTALL)
MONTHS = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%B %Y", "%b %Y")


def closest(name: str, candidates: Sequence[str]) -> str | None:
    """The candidate that matches a name, None if none does.

    Tried in this order: the same text; the same normal form; a candidate with every word of the name; the most similar
    one (difflib's ratio of the normal forms, at least 0.6). Of equal matches the first is taken.
    """
    if name in candidates:
        return name
    wanted = normal(name[:LONGEST])
    forms = [normal(candidate[:LONGEST]) for candidate in candidates]
    if wanted in forms:
        return candidates[forms.index(wanted)]
    words = set(wanted.split())
    for candidate, form in zip(candidates, forms, strict=True):
        if words and words <= set(form.split()):
            return candidate
    ratios = [SequenceMatcher(None, wanted, form, autojunk=False).ratio() for form in forms]
    best = max(ratios, default=0.0)
    return candidates[ratios.index(best)] if best >= LIKE else None


def names_of(field: Any) -> list[str]:
    """The names in a field that a model filled in: a text with commas, a list, a number; at most 5, each once."""
    parts = field if isinstance(field, list) else str("" if field is None else field).split(",")
    names = [str(part).strip() for part in parts if isinstance(part, str | int)]
    return list(dict.fromkeys(name for name in names if name and name.casefold() not in ("none", "null")))[:MOST_NAMES]


def day_of(field: Any, default: str | None = None) -> str | None:
    """A date in the API's form (2024-02-28, 2024-02 or 2024), from the field or else from ``default``.

    Understood are ISO dates and times, ``02/28/2024, 10:04:54 PT`` (CRAG's query times) and dates with an English month
    name, with or without a weekday before them and a clock time after them.
    """
    text = str(field or "").strip()[:LONGEST]
    iso = re.search(r"\b([12][0-9]{3})(-[0-9]{2})?(-[0-9]{2})?(?=T[0-9]|\b)", text)
    american = re.search(r"\b([0-9]{1,2})/([0-9]{1,2})/([12][0-9]{3})\b", text)
    try:
        if american:
            month, day, year = map(int, american.groups())
            return date(year, month, day).isoformat()
        named = _named(text)
        if named:
            return named
        if iso:
            whole = "".join(part or "" for part in iso.groups())
            date.fromisoformat((whole + "-01-01")[:10] if len(whole) == 4 else (whole + "-01")[:10])
            return whole
    except ValueError:
        pass  # not a day of the calendar
    return day_of(default) if default else None


def _named(text: str) -> str | None:
    """``Tuesday, March 5, 2024, 10:04 PT`` and the like."""
    text = CLOCK.sub("", WEEKDAY.sub("", text))
    for form in MONTHS:
        try:
            day = datetime.strptime(text, form)
        except ValueError:
            continue
        return day.strftime("%Y-%m-%d" if "%d" in form else "%Y-%m")
    return None
