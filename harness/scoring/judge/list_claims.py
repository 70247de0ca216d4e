"""Lists: whether a prediction has exactly the items of the answer."""

from __future__ import annotations

import re

from lm_eval_rag.harness.scoring.judge.places import place_and_regions
from lm_eval_rag.harness.scoring.judge.reading import DENIALS, STOP, Pair, content, from_question, items, words
from lm_eval_rag.harness.scoring.judge.short_names import short_name
from lm_eval_rag.harness.scoring.judge.values import dates, quantities, same_date, same_quantity
from lm_eval_rag.harness.scoring.normalise import has_words

LIST_WORDS = 6  # maximum number of words of a list item
_PREPOSITIONS = frozenset(re.findall(r"\w+", "to in on at of from by with for as since until near along through"))
_OTHER_NAME = re.compile(
    r"(?<![\w.'’-])([\w.'’-]{1,40}(?: [A-Z][\w.'’-]{0,40}){0,2})\s?"
    r"\((?:formerly|previously|once|originally|also|now|aka|or)(?: known as| called)? ([^()]*)\)"
)
_YES_OR_NO = re.compile(r"\s*(?:yes|no)\b[,.;:]", re.IGNORECASE)


def listed(pair: Pair) -> bool | None:
    """The answer is a list: the prediction has exactly the same items, numbers in the same order, names in any.

    "Yes, it is larger" and the place "Houston, Texas" are no lists.
    """
    expected = items(pair.gold)
    if len(expected) < 2 or any(len(item.split()) > LIST_WORDS for item in expected):
        return None
    if _YES_OR_NO.match(pair.gold) or _one_number(pair.gold) or place_and_regions(pair.gold, pair.lower_question):
        return None
    predicted = _items(pair.prediction, expected)
    hedged = has_words(pair.prediction_words, "or") and not has_words(pair.gold_words, "or")
    if hedged or len(predicted) != len(expected):
        return False
    if all(len(quantities(item)) == 1 and not dates(item) for item in expected):
        return all(
            _same_item(candidate, item, pair.question) for candidate, item in zip(predicted, expected, strict=True)
        )
    remaining = list(predicted)
    for item in expected:
        match = next((candidate for candidate in remaining if _same_item(candidate, item, pair.question)), None)
        if match is None:
            return False
        remaining.remove(match)
    return True


def _one_number(text: str) -> bool:
    """Whether a text is one number, such as "5 minutes and 55 seconds"."""
    numbers = quantities(text)
    return len(numbers) == 1 and not content(text[: numbers[0].span[0]] + " " + text[numbers[0].span[1] :])


def _items(prediction: str, expected: list[str]) -> list[str]:
    """The items of a prediction; "Meta (formerly Facebook)" is Facebook if that is expected."""
    wanted = {words(item) for item in expected}
    other = _OTHER_NAME.sub(lambda match: match[2] if words(match[2]) in wanted else match[0], prediction)
    return items(other)


def _same_item(predicted: str, item: str, question: str) -> bool:
    """Equal as dates, numbers, or words.

    Further words are allowed before or after an item of a sentence. On both sides they are only allowed if a stop word
    or a word of the question precedes the item, and a preposition follows it: "bordered by [Spain] to the
    south".
    """
    if DENIALS.search(predicted):
        return False
    if dates(item):
        return any(same_date(value, dates(item)[0]) for value in dates(predicted))
    if re.fullmatch(r"[\W\d]*", item) and quantities(item):
        return any(same_quantity(value, quantities(item)[0]) for value in quantities(predicted))
    want, have = words(item), words(predicted)
    if not want:
        return False
    if short_name(Pair(question, item, predicted)):
        return True
    before, found, after = f" {have} ".partition(f" {want} ")
    if not found:
        return False
    first, last = before.split(), after.split()
    return not first or not last or (from_question(first[-1], STOP | content(question)) and last[0] in _PREPOSITIONS)
