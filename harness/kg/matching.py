"""Names in a question matched with names in the graph, and dates with the API's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from difflib import SequenceMatcher
from typing import Any

from lm_eval_rag.harness.kg.names import normal

MOST_NAMES = 5  # that one question may ask about
LONGEST = 200  # characters of a name that are compared
LIKE = 0.6  # of difflib's ratio, below which two names are not the same
MONTHS = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%B %Y", "%b %Y")


def closest(name: str, candidates: Sequence[str]) -> str | None:
    """The candidate that a name means, None if it means none of them.

    In this order: the same text; the same normal form; every word of the name is in it; the most alike (difflib's
    ratio of the normal forms, at least 0.6). Ties by the candidates' order, which is the search's.
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
    alike = [SequenceMatcher(None, wanted, form, autojunk=False).ratio() for form in forms]
    best = max(alike, default=0.0)
    return candidates[alike.index(best)] if best >= LIKE else None


def names_of(given: Any) -> list[str]:
    """The names in a field that a model filled: a text with commas, a list, a number; at most 5, each once."""
    parts = given if isinstance(given, list) else str("" if given is None else given).split(",")
    names = [str(part).strip() for part in parts if isinstance(part, str | int)]
    return list(dict.fromkeys(name for name in names if name and name.casefold() not in ("none", "null")))[:MOST_NAMES]


def day_of(given: Any, otherwise: str | None = None) -> str | None:
    """A date in the API's form (2024-02-28, 2024-02 or 2024); ``otherwise`` is read where ``given`` holds none.

    Read are ISO dates, ``02/28/2024, 10:04:54 PT`` (CRAG's query times) and dates with the month's English name.
    """
    text = str(given or "").strip()[:LONGEST]
    iso = re.search(r"\b([12][0-9]{3})(-[0-9]{2})?(-[0-9]{2})?\b", text)
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
        pass  # no day of the calendar
    return day_of(otherwise) if otherwise else None


def _named(text: str) -> str | None:
    """``March 5, 2024`` and the like."""
    for form in MONTHS:
        try:
            found = datetime.strptime(text, form)
        except ValueError:
            continue
        return found.strftime("%Y-%m-%d" if "%d" in form else "%Y-%m")
    return None
