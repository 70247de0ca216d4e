"""When a question was asked: ``03/17/2024, 23:55:01 PT`` as ISO 8601 with its offset from UTC."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from lm_eval_rag.harness.common.errors import UserError

FORMAT = re.compile(r"\s*(\d{1,2})/(\d{1,2})/(\d{4}),?\s+(\d{1,2}):(\d\d):(\d\d)\s+([A-Za-z]{2,3})\s*")
STANDARD = -8
FIXED = {"PST": STANDARD, "PDT": STANDARD + 1, "UTC": 0, "GMT": 0}  # hours from UTC
PACIFIC = "PT"


def iso_time(text: str) -> str:
    """The time in ISO 8601: ``2024-03-17T23:55:01-07:00``.

    PT is Pacific time with daylight saving time (since 2007 from the second Sunday of March to the first Sunday of
    November, at two o'clock). A time that occurs twice is the first of the two; one that is skipped is standard time.

    Raises:
        UserError: Another format, an impossible time, or an unknown zone.
    """
    match = FORMAT.fullmatch(text)
    zone = match[7].upper() if match else ""
    if match is None or (zone != PACIFIC and zone not in FIXED):
        raise _wrong(text)
    month, day, year, hour, minute, second = map(int, match.groups()[:6])
    try:
        local = datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise _wrong(text) from None
    hours = FIXED[zone] if zone in FIXED else STANDARD + _daylight_saving(local)
    return local.replace(tzinfo=timezone(timedelta(hours=hours))).isoformat()


def _daylight_saving(local: datetime) -> bool:
    begin = _sunday(local.year, 3, 2).replace(hour=3)  # the hour from two to three is skipped
    return begin <= local < _sunday(local.year, 11, 1).replace(hour=2)


def _sunday(year: int, month: int, which: int) -> datetime:
    first = datetime(year, month, 1)
    return first + timedelta(days=(6 - first.weekday()) % 7 + 7 * (which - 1))


def _wrong(text: str) -> UserError:
    zones = ", ".join((PACIFIC, *FIXED))
    return UserError(
        f"The time {text[:60]!r} cannot be parsed: write MM/DD/YYYY, HH:MM:SS and one of the zones {zones}."
    )
