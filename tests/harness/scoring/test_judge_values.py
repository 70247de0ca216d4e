"""Numbers and dates in texts: value, precision, unit, place, and which pairs are equal."""

from __future__ import annotations

import itertools

import pytest

from lm_eval_rag.harness.scoring.judge.values import Date, Quantity, dates, quantities, same_date, same_quantity


def number(text: str) -> Quantity:
    (quantity,) = quantities(text)
    return quantity


@pytest.mark.parametrize(
    ("text", "value", "step", "unit", "scale"),
    [
        ("7", 7, 1, "", 1), ("1,234,567", 1_234_567, 1, "", 1), ("9.77", 9.77, 0.01, "", 1), (".5", 0.5, 0.1, "", 1),
        ("1,234.5", 1234.5, 0.1, "", 1), ("-4", -4, 1, "", 1), ("− 4.25", -4.25, 0.01, "", 1),
        ("9.77%", 9.77, 0.01, "%", 1), ("9.7 percent", 9.7, 0.1, "%", 1), ("3 PER CENT", 3, 1, "%", 1),
        ("$4.50", 4.5, 0.01, "$", 1), ("-$4", -4, 1, "$", 1), ("$-4", -4, 1, "$", 1), ("US$ 20", 20, 1, "$", 1),
        ("€3", 3, 1, "€", 1), ("3 euros", 3, 1, "€", 1), ("£3", 3, 1, "£", 1), ("¥300", 300, 1, "¥", 1),
        ("50 cents", 0.5, 0.01, "$", 0.01), ("1.5 million", 1.5e6, 1e5, "", 1), ("$2.5 bn", 2.5e9, 1e8, "$", 1),
        ("12k", 12e3, 1e3, "", 1), ("7M", 7e6, 1e6, "", 1), ("3 trillion dollars", 3e12, 1e12, "$", 1),
        ("2.5 miles", 2.5 * 1609.344, 160.9344, "m", 1609.344), ("5 km", 5000, 1000, "m", 1000),
        ("30 cm", 0.3, 0.01, "m", 0.01), ("6 feet", 1.8288, 0.3048, "m", 0.3048),
        ("3 inches", 0.0762, 0.0254, "m", 0.0254),
        ("2 kg", 2, 1, "kg", 1), ("10 lbs", 4.5359237, 0.45359237, "kg", 0.45359237), ("90 minutes", 5400, 60, "s", 60),
        ("2 hours", 7200, 3600, "s", 3600), ("3 weeks", 1_814_400, 604_800, "s", 604_800),
        ("2-hour", 7200, 3600, "s", 3600),
        ("zero", 0, 1, "", 1), ("twelve", 12, 1, "", 1), ("twenty-one", 21, 1, "", 1), ("Ninety Nine", 99, 1, "", 1),
        ("one hundred", 100, 1, "", 1), ("two hundred and five", 205, 1, "", 1), ("three thousand", 3000, 1, "", 1),
        ("two hundred thousand and six", 200_006, 1, "", 1), ("four million two thousand", 4_002_000, 1, "", 1),
        ("thousand five", 1005, 1, "", 1), ("five hundred dollars", 500, 1, "$", 1),
        ("twelve days", 12 * 86_400, 86_400, "s", 86_400),
    ],
)  # fmt: skip
def test_value_precision_and_unit(text: str, value: float, step: float, unit: str, scale: float) -> None:
    quantity = number(text)
    assert (quantity.value, quantity.step, quantity.scale) == pytest.approx((value, step, scale), rel=1e-12)
    assert quantity.unit == unit and quantity.span == (0, len(text))


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("it has 12 rooms", (7, 9)),
        ("about 12 rooms", (0, 8)),
        ("it cost -$4.5 million", (8, 21)),
        ("a 5 km run", (2, 6)),
    ],
)
def test_a_number_knows_its_place(text: str, span: tuple[int, int]) -> None:
    assert number(text).span == span


@pytest.mark.parametrize(
    "mark", ["about", "around", "Approximately", "roughly", "nearly", "almost", "over", "more than", "some", "circa"]
)
def test_approximate_numbers_are_marked(mark: str) -> None:
    assert number(f"{mark} 120").about and number(f"{mark} twelve").about
    assert not number(f"{mark}s 120").about and not number("120").about


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("over 42", ">"), ("more than 42", ">"), ("at least 42", ">"), ("no fewer than 42", ">"), ("> 42", ">"),
        ("42+", ">"), ("42 or more", ">"), ("less than 42", "<"), ("under 42", "<"), ("up to 42", "<"), ("<42", "<"),
        ("42 or less", "<"), ("about 42", ""), ("42", ""), ("nearly 42", ""),
    ],
)  # fmt: skip
def test_bounds(text: str, bound: str) -> None:
    assert number(text).bound == bound and number(text).value == 42
    assert same_quantity(number(text), number("42")) is (bound == "")
    assert same_quantity(number(text), number(text)) and same_quantity(number("42"), number(text))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("over 1.5 million", "1,523,000", True), ("over 1.6 million", "1,523,000", False),
        ("less than 1.6 million", "1,523,000", False), ("under 1.53 million", "1,523,000", True),
        ("over 1.53 million", "1,523,000", False), ("over 42", "under 42", False), ("over $5", "5", False),
        ("over 4.9", "5 km", True), ("over 5", "5 km", False), ("at least 99", "100", True),
    ],
)  # fmt: skip
def test_a_bound_is_right_about_a_number_near_and_beyond_it(one: str, other: str, same: bool) -> None:
    assert same_quantity(number(one), number(other)) is same


@pytest.mark.parametrize(
    ("text", "value", "step", "unit"),
    [
        ("7 and a half", 7.5, 0.1, ""), ("two and a half million", 2.5e6, 1e5, ""), ("7½ km", 7500, 100, "m"),
        ("8 1/2", 8.5, 0.1, ""), ("3 and a quarter", 3.25, 0.01, ""), ("3 3/4", 3.75, 0.01, ""),
        ("2 hours and 50 minutes", 10_200, 60, "s"), ("2 hours, 50 minutes", 10_200, 60, "s"),
        ("2h 50m", 10_200, 60, "s"),
        ("2h50min", 10_200, 60, "s"), ("two hours five minutes", 7500, 60, "s"), ("3 minutes 15 seconds", 195, 1, "s"),
        ("6 feet 2 inches", 1.8796, 0.0254, "m"), ("over 2 hours and 5 minutes", 7500, 60, "s"),
        ("330 m", 330, 1, "m"), ("330m", 330e6, 1e6, ""), ("$5 m", 5e6, 1e6, "$"), ("70 mph", 31.2928, 0.44704, "m/s"),
    ],
)  # fmt: skip
def test_fractions_and_numbers_of_two_units(text: str, value: float, step: float, unit: str) -> None:
    quantity = number(text)
    assert (quantity.value, quantity.step) == pytest.approx((value, step), rel=1e-9) and quantity.unit == unit
    assert quantity.span == (0, len(text))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2 hours or 50 minutes", [7200, 3000]), ("50 minutes and 2 hours", [3000, 7200]),
        ("2 hours 70 minutes", [7200, 4200]),
        ("2.5 hours 10 minutes", [9000, 600]), ("2 hours, about 5 minutes", [7200, 300]), ("7 and a bit", [7]),
        ("2 + 3", [2, 3]), ("x -> 5", [5]), ("7/8", []),
    ],
)  # fmt: skip
def test_what_stays_apart(text: str, values: list[float]) -> None:
    assert [quantity.value for quantity in quantities(text)] == values


def test_a_bound_is_a_bound_by_its_own_words() -> None:
    assert [quantity.bound for quantity in quantities("2 + 3, x -> 5, 4 orders")] == ["", "", "", ""]


def test_signs_for_about_are_marks_too() -> None:
    assert number("~120").about and number("≈ 120").about


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("1998", True), ("in 2024.", True), ("998", False), ("3024", False), ("19980", False), ("1,998", False),
        ("1998.0", False), ("$1998", False), ("1998%", False), ("1998 km", False), ("-1998", False),
        ("about 1998", False), ("1998 million", False), ("twelve", False),
    ],
)  # fmt: skip
def test_what_may_be_a_year(text: str, year: bool) -> None:
    assert number(text).year is year


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3 of 12 in 2020", [3, 12, 2020]), ("one of 5", [5]), ("one", [1]), ("one film", [1]),
        ("one  OF them", []), ("ONE of them", []),
        ("on March 3, 2024 twelve came, and about three left", [12, 3]), ("twelve on March 3, 2024", [12]),
        ("twelve%3 March 2024", [12]), ("5 May.twelve birds", [12]),
        ("hundred", []), ("millions", []), ("million dollars", []), ("a hundred and two", [102]),
        ("two hundred", [200]),
        ("3d", []), ("mp3", []), ("1.2.3", []), ("50-40", []), ("7/8", []), ("8–9", []), ("5-a-side", [5]),
        ("on March 3, 2024 it had 7", [7]), ("7 on 2024-03-03 and 8", [7, 8]), ("3 march 2020", []),
        ("12 in May 2020", [12]),
        ("x 1. y 2, z 3", [1, 2, 3]), ("5. 6", [5, 6]), ("5.", [5]), ("twenty two", [22]), ("twenty, two", [20, 2]),
    ],
)  # fmt: skip
def test_the_numbers_of_a_text_in_order(text: str, values: list[float]) -> None:
    assert [quantity.value for quantity in quantities(text)] == values


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("2024-03-05", (2024, 3, 5)), ("2024-03", (2024, 3, None)), ("2024-03-05T10:30:00Z", (2024, 3, 5)),
        ("2024/03/05", (2024, 3, 5)), ("3/4/2024", (2024, 3, 4)), ("13/4/2024", (2024, 4, 13)),
        ("12/4/2024", (2024, 12, 4)),
        ("March 5, 2024", (2024, 3, 5)), ("Mar. 5th 2024", (2024, 3, 5)), ("sept 5 of 2024", (2024, 9, 5)),
        ("5 March 2024", (2024, 3, 5)), ("1st of MAY, 2024", (2024, 5, 1)), ("22nd december", (None, 12, 22)),
        ("March 2024", (2024, 3, None)), ("March of 2024", (2024, 3, None)), ("June 3", (None, 6, 3)),
        ("31 January 1999", (1999, 1, 31)), ("December 1, 1999", (1999, 12, 1)),
    ],
)  # fmt: skip
def test_the_parts_of_a_date(text: str, parts: tuple[int | None, ...]) -> None:
    for before, after in itertools.product(("", "on "), ("", " at last.")):
        (date,) = dates(before + text + after)
        assert (date.year, date.month, date.day) == parts
        assert (before + text + after)[slice(*date.span)] == text


@pytest.mark.parametrize(
    "text",
    [
        "2024-13-01", "13/13/2024", "0/4/2024", "March 32, 2024", "0 March", "2024", "may I", "2024-03-05-7",
        "1.2024-03-05",
        "1/2/3/2024", "3/4/20245", "2024/00/05", "2024/03/32", "2024/03/00",
    ],
)  # fmt: skip
def test_what_is_no_date(text: str) -> None:
    assert dates(text) == []


def test_several_dates_stand_in_the_order_of_the_text_and_share_no_place() -> None:
    text = "from 5 March 2024 to 2025-01-02, then May 7 or 3/4/2026"
    assert [(date.year, date.month, date.day) for date in dates(text)] == [
        (2024, 3, 5),
        (2025, 1, 2),
        (None, 5, 7),
        (2026, 3, 4),
    ]
    for touching in ("2024-03-05T10:May 7, 2025", "5 May.March 3, 2024"):
        first, second = dates(touching)
        assert (first.span[0], first.span[1], second.span[1]) == (0, second.span[0], len(touching))


def test_a_date_may_have_more_parts_than_the_expected_one() -> None:
    parts = [(None, 3, None), (None, 3, 5), (2024, 3, None), (2024, 3, 5)]
    others = [(None, 4, None), (None, 3, 6), (2025, 3, None), (2024, 3, 6), (2025, 3, 5), (2024, 4, 5)]
    for have, want in itertools.product([*parts, *others], repeat=2):
        wanted = all(part is None or part == other for part, other in zip(want, have, strict=True))
        assert same_date(Date(*have), Date(*want)) == wanted


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("9.77", "9.8", True), ("9.74", "9.8", False), ("9.75", "9.8", True), ("-9.75", "-9.8", True),
        ("9.77", "10", False),
        ("1,523,000", "1.5 million", True), ("1,553,000", "1.5 million", False), ("1,460,000", "1.5 million", False),
        ("$26.59", "$26.72", False), ("26.59", "26.591", True), ("0.014", "0.01", False), ("100", "101", False),
        ("about 100", "101", True), ("100", "around 102", True), ("about 100", "103", False),
        ("about 1998", "1999", False),
        ("5 miles", "8.05 km", True), ("5 miles", "8.3 km", False), ("5 miles", "5 km", False), ("5 miles", "5", True),
        ("5 km", "5", True), ("5 km", "5000", False), ("$3", "3%", False), ("$3", "€3", False), ("3 kg", "3 m", False),
        ("12 inches", "1 foot", True), ("60 min", "1 hour", True), ("61 min", "1 hour", True),
        ("62 min", "1 hour", False),
        ("5 cents", "$0.05", True), ("7", "7.0", True), ("7", "7.4", False), ("7", "6.6", False),
        ("300.4", "300", True),
        ("3 million", "3,000,000", True), ("$3", "$3.4", False), ("$300.6", "$300", False), ("2%", "2", True),
        ("-4", "4", False),
        ("1998", "about 1999 km", False), ("about 100 km", "101", True), ("100 km", "101", False),
        ("50 cents", "50.4", True),
        ("50 cents", "50.6", False), ("5,460,000", "5.4 million", False), ("5,440,000", "5.4 million", True),
        ("0", "0.0", True),
    ],
)  # fmt: skip
def test_equal_within_the_tolerance_and_in_both_directions(one: str, other: str, same: bool) -> None:
    assert same_quantity(number(one), number(other)) is same
    assert same_quantity(number(other), number(one)) is same


def test_the_tolerance_is_two_percent_and_the_coarser_step() -> None:
    """Restated: with steps a >= b, both round to one multiple of a, and they differ by at most 2 % of the larger."""
    for whole, tenths in itertools.product(range(40, 260, 7), range(0, 10)):
        exact = whole + tenths / 10
        for candidate in (whole - 1, whole, whole + 1, whole + 2):
            rounded = whole + (tenths >= 5)
            wanted = candidate == rounded and abs(candidate - exact) <= 0.02 * max(candidate, exact)
            assert same_quantity(number(str(candidate)), number(f"{exact:.1f}")) == (wanted or exact == candidate)
