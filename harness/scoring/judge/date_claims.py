"""Dates: the one that the answer states, and whether a prediction claims it."""

from __future__ import annotations

import re

from lm_eval_rag.harness.scoring.judge.reading import WHEN, Pair, content, denied
from lm_eval_rag.harness.scoring.judge.values import Date, dates, quantities, same_date

# a question about the time near it fixes the year, so that "March 6" is a whole date
_NEAR_NOW = re.compile(
    r"\b(?:next|upcoming|coming|last|latest|recent|most recent|previous|this|today|tomorrow|yesterday|tonight)\b"
)


def date_claimed(pair: Pair) -> bool | None:
    """The answer is a date, or has one date and the question asks "when": all dates of the prediction are that date.

    A prediction may leave out the year if the question fixes it: it names the year, or asks for the next or last time.
    """
    expected = _expected_date(pair)
    if expected is None:
        return None
    in_question = [_key(date) for date in _dates(pair.lower_question)]
    claimed = [date for date in _dates(pair.prediction) if _key(date) not in in_question or same_date(date, expected)]
    if expected.month is None:  # a year; a full date in that year is correct too
        claimed = [date for date in claimed if date.year is not None]
    if not all(same_date(date, expected) or _without_year(date, expected, pair) for date in claimed):
        return False
    return bool(claimed) and not denied(pair.prediction, *claimed[0].span) and not _hedged(pair.prediction, claimed[0])


def _hedged(text: str, date: Date) -> bool:
    """Whether "or" stands before or after a date."""
    start, end = date.span
    return bool(re.search(r"\bor\W*$", text[:start].lower()) or re.match(r"\W*or\b", text[end:].lower()))


def _without_year(date: Date, expected: Date, pair: Pair) -> bool:
    year_is_fixed = str(expected.year) in pair.lower_question or bool(_NEAR_NOW.search(pair.lower_question))
    same_day = date.day is not None and (date.month, date.day) == (expected.month, expected.day)
    return date.year is None and same_day and year_is_fixed


def _key(date: Date) -> tuple[int | None, int | None, int | None]:
    return date.year, date.month, date.day


def _dates(text: str) -> list[Date]:
    """Dates and possible years."""
    return [*dates(text), *(Date(int(q.value), span=q.span) for q in quantities(text) if q.year)]


def _expected_date(pair: Pair) -> Date | None:
    gold_dates = _dates(pair.gold)
    first = gold_dates[0] if len(gold_dates) == 1 else None
    whole = first is not None and not content(pair.gold[: first.span[0]] + " " + pair.gold[first.span[1] :])
    if first is not None and whole and (first.month or WHEN.search(pair.lower_question)):
        return first
    in_question = {_key(date) for date in _dates(pair.lower_question)}
    new = {_key(date): date for date in gold_dates if _key(date) not in in_question}
    return next(iter(new.values())) if len(new) == 1 and WHEN.search(pair.lower_question) else None
