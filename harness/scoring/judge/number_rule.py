"""Numbers: the one that the answer states, and whether a prediction claims it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from lm_eval_rag.harness.scoring.judge.number_claims import NOUN, claimed_numbers
from lm_eval_rag.harness.scoring.judge.reading import HOW_MANY, Pair, content, denied
from lm_eval_rag.harness.scoring.judge.values import UNITS, Quantity, quantities, same_quantity

MOST = 50  # a prediction with more numbers claims none
_LENGTHS = {"decade": 10, "century": 100}  # in years
_PART_OF = re.compile(r"\b(half|quarter)(?: of)? (?:an? )?(dozen|decade|century)\b", re.IGNORECASE)
_DOZENS = re.compile(r"\b(?:(an?|one|two|three|four|five|six|\d+)\s+)?dozen\b", re.IGNORECASE)
_ONE_OF = re.compile(r"(?<!of )\ban? (decade|century)\b", re.IGNORECASE)
_AND_HALF = re.compile(r"\b(?:an?|one) (year|decade|century|hour|day|week|month|minute) and a half\b", re.IGNORECASE)
_PARTS = {"half": 0.5, "quarter": 0.25}
_TIMES = re.compile(r"\b(?:once|twice|thrice)\b", re.IGNORECASE)
_TIMES_COUNTED = {"once": "1 time", "twice": "2 times", "thrice": "3 times"}


def number_claimed(pair: Pair) -> bool | None:
    """The answer is a number, or has one that the question asks for: all numbers of the prediction equal it."""
    pair = Pair(pair.question, _counted(pair.gold, pair), _counted(pair.prediction, pair))
    expected = _expected_quantity(pair)
    if expected is None:
        return None
    in_question = {q.value for q in quantities(pair.lower_question)}
    claimed = [q for q in quantities(pair.prediction) if q.value not in in_question or same_quantity(q, expected)]
    claimed = [q for q in claimed if not q.year or same_quantity(q, expected)]  # "in 2023" beside a count
    if len(claimed) > MOST:
        return False
    claimed = claimed_numbers(claimed, expected, pair)
    if not all(same_quantity(q, expected) or _converted(q, expected, pair) for q in claimed):
        return False
    return bool(claimed) and not denied(pair.prediction, *claimed[0].span)


def _converted(number: Quantity, expected: Quantity, pair: Pair) -> bool:
    """Whether a number with a unit is exactly the answer in the unit of "how many days": two weeks and 14."""
    noun = NOUN.search(pair.lower_question)
    unit, scale = UNITS.get(noun[1] if noun else "", ("", 1.0))
    exact = math.isclose(number.value, expected.value * scale, rel_tol=1e-9)
    return not expected.unit and number.unit == unit != "" and exact and not number.bound


def _counted(text: str, pair: Pair) -> str:
    """A text with dozens in digits, and its only "twice" as "2 times" and "none" as 0, where a number is asked for."""
    if not HOW_MANY.search(pair.lower_question):
        return text
    text = _AND_HALF.sub(r"1.5 \1s", text)
    text = _DOZENS.sub(_in_dozens, _ONE_OF.sub(r"1 \1", _PART_OF.sub(_part_of, text)))
    asked = {q.value for q in quantities(pair.lower_question)}
    if any(not q.year and q.value not in asked for q in quantities(text)):
        return text
    if "how many" in pair.lower_question and len(_TIMES.findall(text)) == 1:
        return _TIMES.sub(lambda word: _TIMES_COUNTED[word[0].lower()], text)
    return re.sub(r"\bnone\b", "0", text, flags=re.IGNORECASE) if "how many" in pair.lower_question else text


def _part_of(match: re.Match[str]) -> str:
    """Half a dozen is 6, a quarter of a century 25 years."""
    whole = _LENGTHS.get(match[2].lower())
    part = _PARTS[match[1].lower()]
    return f"{part * 12:g}" if whole is None else f"{part * whole:g} years"


def _in_dozens(match: re.Match[str]) -> str:
    (number,) = quantities(match[1] or "") or [Quantity(1.0, 1.0)]
    return f"{12 * number.value:g}"


def _expected_quantity(pair: Pair) -> Quantity | None:
    numbers = quantities(pair.gold)
    if not numbers:
        return None
    how_many = bool(HOW_MANY.search(pair.lower_question))
    if how_many and all(same_quantity(number, numbers[0]) for number in numbers):  # "330 metres (1,083 ft)"
        numbers = numbers[:1]
    beside = len(content(pair.gold[: numbers[0].span[0]]) | content(pair.gold[numbers[0].span[1] :]))
    if len(numbers) == 1 and (beside == 0 or (beside <= 3 and how_many)):  # not the film "12 monkeys"
        return numbers[0]
    in_question = {q.value for q in quantities(pair.lower_question)}
    new = [q for q in numbers if q.value not in in_question and not q.year]
    if not how_many or not new:
        return None
    return new[0] if len({q.value for q in new}) == 1 else _with_noun(new, pair)


def _with_noun(numbers: Sequence[Quantity], pair: Pair) -> Quantity | None:
    """The number that stands nearest before the noun of "how many goals", if no other number does."""
    noun = NOUN.search(pair.lower_question)
    if noun is None:
        return None
    for words_after in (1, 2, 3):
        near = [
            q for q in numbers if _stem(noun[1]) in map(_stem, pair.gold[q.span[1] :].lower().split()[:words_after])
        ]
        if near:
            return near[0] if len({q.value for q in near}) == 1 else None
    return None


def _stem(word: str) -> str:
    return word.strip(".,;:").rstrip("s")
