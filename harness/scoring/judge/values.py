"""Numbers and dates in answers, and their comparison.

Tolerance: two quantities are equal if they agree after rounding to the coarser of their two written precisions and
differ by at most 2 %. So "9.8%" equals 9.77 % and "1.5 million" equals 1,523,000, but "10%" does not equal 9.77 % and
"$26.59" does not equal $26.72. If one is approximate ("about") or a unit was converted, only the 2 % matter; months
and years are converted exactly, and degrees to the coarser precision. Integers are compared exactly. Different kinds
of units (% and $, miles and kilograms) are never equal. A unit that only one side has is ignored. "330 m" is a length,
"330m" is 330 million. "2 hours and 50 minutes" is one number, in minutes. A bound is right only about a number beyond
it: "over 1.5 million" about 1,523,000, but "over 42" not about 42.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

TOLERANCE = 0.02
SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "mm": 1e6, "m": 1e6, "billion": 1e9,
    "bn": 1e9, "b": 1e9, "trillion": 1e12, "tn": 1e12, "t": 1e12,
}  # fmt: skip
UNITS: dict[str, tuple[str, float]] = {  # as written -> (base unit, factor)
    **dict.fromkeys(("%", "percent", "per cent", "pct", "percentage points"), ("%", 1.0)),
    **dict.fromkeys(("$", "usd", "us$", "dollar", "dollars"), ("$", 1.0)),
    **dict.fromkeys(("€", "eur", "euro", "euros"), ("€", 1.0)),
    **dict.fromkeys(("£", "gbp", "pound sterling"), ("£", 1.0)),
    **dict.fromkeys(("¥", "yen"), ("¥", 1.0)),
    **dict.fromkeys(("cent", "cents"), ("$", 0.01)),
    **dict.fromkeys(("mile", "miles", "mi"), ("m", 1609.344)),
    **dict.fromkeys(("kilometer", "kilometers", "kilometre", "kilometres", "km"), ("m", 1000.0)),
    **dict.fromkeys(("meter", "meters", "metre", "metres"), ("m", 1.0)),
    **dict.fromkeys(("centimeter", "centimeters", "centimetre", "centimetres", "cm"), ("m", 0.01)),
    **dict.fromkeys(("foot", "feet", "ft"), ("m", 0.3048)),
    **dict.fromkeys(("inch", "inches"), ("m", 0.0254)),
    **dict.fromkeys(("mph", "miles per hour"), ("m/s", 0.44704)),
    **dict.fromkeys(("km/h", "kph", "kilometers per hour", "kilometres per hour"), ("m/s", 1 / 3.6)),
    **dict.fromkeys(("kilogram", "kilograms", "kg"), ("kg", 1.0)),
    **dict.fromkeys(("pound", "pounds", "lb", "lbs"), ("kg", 0.45359237)),
    **dict.fromkeys(("second", "seconds", "sec"), ("s", 1.0)),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), ("s", 60.0)),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), ("s", 3600.0)),
    **dict.fromkeys(("day", "days"), ("s", 86400.0)),
    **dict.fromkeys(("week", "weeks"), ("s", 604800.0)),
    **dict.fromkeys(("month", "months"), ("year", 1 / 12)), **dict.fromkeys(("year", "years"), ("year", 1.0)),
    **dict.fromkeys(("decade", "decades"), ("year", 10.0)), **dict.fromkeys(("century", "centuries"), ("year", 100.0)),
    **dict.fromkeys(("°c", "° c", "celsius", "degrees celsius", "degrees c"), ("°c", 1.0)),
    **dict.fromkeys(("°f", "° f", "fahrenheit", "degrees fahrenheit", "degrees f"), ("°c", 5 / 9)),
}  # fmt: skip
_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_EXACT = {"°c": 1.0, "year": 1e-6}  # units in which numbers are not compared by 2 %, and the steps they may differ by
_MONTHS = "january february march april may june july august september october november december"
ONES = {word: i for i, word in enumerate(_ONES.split())}
TENS = {word: 10 * i for i, word in enumerate(_TENS.split(), start=2)}
BELOW_100 = ONES | TENS
MONTHS = {name[:length]: i for i, name in enumerate(_MONTHS.split(), start=1) for length in (3, 4, len(name))}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit.

    Args:
        value: In the base unit (metres, seconds, dollars).
        step: Precision, in the base unit: 0.01 for "9.77", 1e5 for "1.5 million".
        unit: The base unit (``%``, ``$``, ``m``), or "".
        scale: The written unit's factor, or 1.
        zero: What the written unit calls 0 of the base unit: 32 for "°F".
        about: Whether it is marked as approximate.
        year: Whether it may be a year: four digits without unit, sign or scale.
        bound: ``>`` if the number is only said to be more or at least this ("over 42"), ``<`` for less, else "".
        span: Position in the text, (start, end).
    """

    value: float
    step: float
    unit: str = ""
    scale: float = 1.0
    zero: float = 0.0
    about: bool = False
    year: bool = False
    bound: str = ""
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Date:
    """A date; None for parts that the text leaves out."""

    year: int | None
    month: int | None = None
    day: int | None = None
    span: tuple[int, int] = (0, 0)


_UNIT = "|".join(
    sorted((re.escape(unit) for unit in UNITS if unit[0].isalpha() or unit[0] == "°"), key=len, reverse=True)
)
_SCALE = "hundred|thousand|million|billion|trillion|mn|bn|tn|[kmbt](?![a-z])"
_SPELLED = f"(?:{'|'.join([*ONES, *TENS])}|hundred|thousand|million|billion|trillion)"
_ABOUT = r"about|around|approximately|roughly|nearly|almost|some|circa|approx\.?"
_ABOVE = r"over|more than|above|at least|exceed(?:s|ed|ing)|no (?:less|fewer) than|greater than"
_BELOW = r"less than|fewer than|below|under|at most|up to|no more than"
_PART = r"\s+and\s+an?\s+(?P<part>half|quarter)\b|\s?(?P<sign3>[½¼¾])|\s(?P<slash>1/2|1/4|3/4)(?![\d/])"
_PARTS = {"half": 0.5, "quarter": 0.25, "½": 0.5, "¼": 0.25, "¾": 0.75, "1/2": 0.5, "1/4": 0.25, "3/4": 0.75}
_QUANTITY = re.compile(
    rf"(?P<about>(?:~|≈|(?P<bound>(?<![-=])>|<|\b(?:(?P<above>{_ABOVE})|{_BELOW})\s)|\b(?:{_ABOUT})\s)\s*)?"
    r"(?P<sign>(?<![\w.])[-−]\s?)?(?:(?P<money>us\$|[$€£¥])\s?(?P<sign2>[-−])?)?"
    r"(?:(?<![\w.])(?<!\d[-–/])(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    rf"|\b(?P<words>{_SPELLED}(?:(?:\s|-|\sand\s){_SPELLED})*)\b)(?:{_PART})?"
    rf"(?:\s?-?(?P<scale>{_SCALE})\b)?"
    rf"(?:\s?(?P<percent>%)|[\s-]?(?P<unit>{_UNIT})(?![\w]))?",
    re.IGNORECASE,
)
_AND_MORE = re.compile(r"\+(?!\s*\d)|\s+or (?:more|greater|higher|older|longer|(less|fewer|lower|younger))\b", re.I)
_SHORT_TIME = re.compile(r"(?<![\w.])(\d{1,3})\s?h(?:rs?)?\.?\s?(\d{1,2})\s?m(?:ins?)?\b", re.IGNORECASE)
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{4})(?!\d)"
_DATES = [
    re.compile(r"(?<![\d.])(?P<year>\d{4})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?(?![\d-])(?:t[\d:.]+z?)?", re.I),
    re.compile(r"(?<![\d/.])(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})(?![\d/])"),
    re.compile(r"(?<![\d/.])(?P<first>\d{1,2})[/](?P<second>\d{1,2})/(?P<year>\d{4})(?![\d/])"),
    re.compile(rf"\b(?P<name>{_MONTH})\b\.?\s+{_DAY}(?!\d)(?:,?\s+(?:of\s+)?{_YEAR})?", re.I),
    re.compile(rf"(?<!\d){_DAY}\s+(?:of\s+)?(?P<name>{_MONTH})\b\.?(?:,?\s+{_YEAR})?", re.I),
    re.compile(rf"\b(?P<name>{_MONTH})\b\.?,?\s+(?:of\s+)?{_YEAR}", re.I),
]  # fmt: skip


def dates(text: str) -> list[Date]:
    """The dates of a text in order, without bare years; 3/4/2024 is March 4th."""
    matched: list[Date] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            free = all(match.end() <= other.span[0] or match.start() >= other.span[1] for other in matched)
            date = _date(match) if free else None
            if date is not None:
                matched.append(date)
    return sorted(matched, key=lambda date: date.span)


def _date(match: re.Match[str]) -> Date | None:
    part = match.groupdict()
    month, day = (MONTHS[part["name"].lower()] if part.get("name") else part.get("month")), part.get("day")
    if part.get("first"):
        month, day = (part["second"], part["first"]) if int(part["first"]) > 12 else (part["first"], part["second"])
    year = int(part["year"]) if part.get("year") else None
    month, day = int(month or 0) or None, int(day) if day else None
    if month is None or month > 12 or (day is not None and not 1 <= day <= 31):
        return None
    return Date(year, month, day, match.span())


def same_date(date: Date, expected: Date) -> bool:
    """Whether a date has every part of the expected date, with equal values; it may have more parts."""
    pairs = ((date.year, expected.year), (date.month, expected.month), (date.day, expected.day))
    return all(want is None or have == want for have, want in pairs)


def quantities(text: str) -> list[Quantity]:
    """The numbers of a text in order, without those inside dates, words and identifiers."""
    short = [_short_time(match) for match in _SHORT_TIME.finditer(text)]
    taken = bytearray(len(text))
    for start, end in [*(date.span for date in dates(text)), *(time.span for time in short)]:
        taken[start:end] = b"1" * (end - start)
    single = [
        quantity
        for match in _QUANTITY.finditer(text)
        if not any(taken[_start(match) : match.end()])
        for quantity in _quantity(text, match)
    ]
    return _joined(text, sorted([*single, *short], key=lambda quantity: quantity.span))


def _short_time(match: re.Match[str]) -> Quantity:
    """2h 50m"""
    return Quantity(3600.0 * int(match[1]) + 60.0 * int(match[2]), 60.0, "s", 60.0, span=match.span())


def _joined(text: str, numbers: Sequence[Quantity]) -> list[Quantity]:
    """The same numbers, but one that goes on in a smaller unit is one: "2 hours and 50 minutes", "6 feet 2 inches"."""
    joined: list[Quantity] = []
    for number in numbers:
        last = joined[-1] if joined else Quantity(0.0, 0.0)
        between = text[last.span[1] : number.span[0]]
        smaller = last.unit == number.unit != "" and number.value < last.step == last.scale > number.scale
        if smaller and not number.about and re.fullmatch(r",?\s*(?:and\s+)?", between, re.IGNORECASE):
            joined[-1] = replace(
                number,
                value=last.value + number.value,
                about=last.about,
                bound=last.bound,
                span=(last.span[0], number.span[1]),
            )
        else:
            joined.append(number)
    return joined


def _start(match: re.Match[str]) -> int:
    """Where the number itself starts, after its sign and "about"."""
    return match.start("words" if match["digits"] is None else "digits")


def _quantity(text: str, match: re.Match[str]) -> Iterator[Quantity]:
    digits, words = match["digits"], match["words"]
    if digits is None and re.fullmatch(r"one|hundred|thousand|million|billion|trillion", words, re.I):
        after = text[match.end() :].lstrip().lower()
        if words.lower() != "one" or after.startswith("of"):
            return  # "one of them", "millions of"
    if digits is not None and re.match(r"\w|[.,/:–-]\d", text[match.end() :]):
        return  # inside a word or an identifier: 3d, 1.2.3, 50-40
    value, step = _digits(digits) if digits is not None else (_spelled(words), 1.0)
    part = (match["part"] or match["sign3"] or match["slash"] or "").lower()
    if part:
        value, step = value + _PARTS[part], 0.1 if _PARTS[part] == 0.5 else 0.01
    metres = (match["scale"] or "") == "m" and text[match.start("scale") - 1].isspace()
    metres = metres and not (match["money"] or match["unit"])
    if match["scale"] and not metres:
        factor = SCALES[match["scale"].lower()]
        value, step = value * factor, step * factor
    sign = match["sign"] or match["sign2"]
    written = (match["money"] or match["percent"] or match["unit"] or ("metres" if metres else "")).lower()
    unit, scale = UNITS.get(written, ("", 1.0))
    zero = 32.0 if unit == "°c" and scale != 1 else 0.0
    plain = not (match["money"] or match["scale"] or match["percent"] or match["unit"] or sign or match["about"])
    bound = "" if match["bound"] is None else ">" if match["above"] or match["bound"] == ">" else "<"
    if beyond := _AND_MORE.match(text, match.end()):
        bound = "<" if beyond[1] else ">"
    yield Quantity(
        ((-value if sign else value) - zero) * scale,
        step * scale,
        unit,
        scale,
        zero,
        about=bool(match["about"] or beyond),
        year=plain and digits is not None and bool(re.fullmatch(r"[12]\d{3}", digits)),
        bound=bound,
        span=match.span(),
    )


def _digits(text: str) -> tuple[float, float]:
    """(value, precision)."""
    bare = text.replace(",", "")
    return float(bare), 10.0 ** -len(bare.partition(".")[2])


def _spelled(text: str) -> float:
    total = part = 0.0
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in BELOW_100:
            part += BELOW_100[word]
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in SCALES:
            total, part = total + (part or 1) * SCALES[word], 0.0
    return total + part


def same_quantity(quantity: Quantity, expected: Quantity) -> bool:
    """Whether two quantities are equal within the tolerance of this module."""
    if quantity.unit and expected.unit and quantity.unit != expected.unit:
        return False
    if quantity.bound and quantity.bound != expected.bound and not _beyond(quantity, expected):
        return False
    if bool(quantity.unit) != bool(expected.unit):  # one has no unit: compare the numbers as written
        quantity, expected = _written(quantity), _written(expected)
    if quantity.value == expected.value:
        return True
    near = math.isclose(quantity.value, expected.value, rel_tol=TOLERANCE)
    if quantity.unit == expected.unit and quantity.unit in _EXACT:
        near = abs(quantity.value - expected.value) <= max(quantity.step, expected.step) * _EXACT[quantity.unit]
    if quantity.about or expected.about or (quantity.scale != expected.scale and quantity.unit):
        return near and not (quantity.year or expected.year)
    step = max(quantity.step, expected.step)
    if quantity.step == expected.step:
        return abs(quantity.value - expected.value) < step * 1e-6
    return near and abs(_rounded(quantity.value, step) - _rounded(expected.value, step)) < step * 1e-6


def _beyond(bound: Quantity, number: Quantity) -> bool:
    """Whether a number keeps a bound: it is more than ``>``, or less than ``<``."""
    if bool(bound.unit) != bool(number.unit):
        bound, number = _written(bound), _written(number)
    return number.value > bound.value if bound.bound == ">" else number.value < bound.value


def _written(quantity: Quantity) -> Quantity:
    return replace(
        quantity, value=quantity.value / quantity.scale + quantity.zero, step=quantity.step / quantity.scale, unit=""
    )


def _rounded(value: float, step: float) -> float:
    """To the nearest step, halves away from zero."""
    return math.copysign(math.floor(abs(value) / step + 0.5 + 1e-9), value) * step
