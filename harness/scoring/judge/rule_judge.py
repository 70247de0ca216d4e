"""The judge without a model: an ordered table of rules; the first rule with an opinion decides.

It is strict. It rejects a prediction that hedges ("A or B"), negates ("not A"), claims a second number or list item,
only mentions the answer beside another candidate, or paraphrases the answer freely. A refusal is missing
(:mod:`.refusals`). ``lm-eval-rag judge-check`` measures its errors and its bias. Each rule is a function of
one gold answer and one prediction that returns True, False, or None for no opinion. A prediction is correct if it is
correct for one of the gold answers.

From a gold answer that is a sentence, the rules extract the part that answers the question: the option that the
question offers, the number that "how many" asks for, the date that "when" asks for, or what the sentence says beyond
the question (:mod:`.gold_answers`). Of a prediction they compare what it claims: :mod:`.mentions` for names,
:mod:`.number_claims`, and :mod:`.option_claims` for "A or B" and yes or no.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lm_eval_rag.harness.scoring.judge.gold_answers import reduced
from lm_eval_rag.harness.scoring.judge.mentions import candidates, only_mentioned
from lm_eval_rag.harness.scoring.judge.number_claims import claimed_numbers
from lm_eval_rag.harness.scoring.judge.option_claims import affirmed, claimed_option, polarity, surname
from lm_eval_rag.harness.scoring.judge.reading import (
    DENIALS,
    HOW_MANY,
    STOP,
    WHEN,
    Pair,
    content,
    denied,
    items,
    words,
)
from lm_eval_rag.harness.scoring.judge.refusals import refused
from lm_eval_rag.harness.scoring.judge.values import Date, Quantity, dates, quantities, same_date, same_quantity
from lm_eval_rag.harness.scoring.normalise import has_words
from lm_eval_rag.harness.scoring.verdict import REFUSAL

VERSION = "3"  # increase it when any verdict changes
LIST_WORDS = 6  # maximum number of words of a list item
COVER = 0.9  # share of a long answer's words that a paraphrase must contain
SAME = 2 / 3  # share of a denial's words that another denial must contain
_NO = re.compile(rf"{DENIALS.pattern}|\bno\b")
COPULAS = frozenset({"is", "was", "are", "were", "be", "being", "named", "called"})
VERBS = COPULAS | {"has", "have", "had", "won", "did", "does", "became", "directed", "wrote", "played", "with", "who"}


def judge(question: str, answers: Sequence[str], prediction: str) -> tuple[float, str]:
    """(1 or 0, name of the rule that decided): the best over the gold answers and the answers within them."""
    within = [part for part in (reduced(gold, question) for gold in answers) if part]
    verdicts = [_decide(Pair(question, gold, prediction)) for gold in (*answers, *within)]
    return max(verdicts, key=lambda verdict: verdict[0], default=(0.0, "no answers"))


def _decide(pair: Pair) -> tuple[float, str]:
    for name, rule in RULES.items():
        opinion = rule(pair)
        if opinion is not None:
            return float(opinion), name
    return 0.0, "no rule"


def _equal(pair: Pair) -> bool | None:
    """The same words."""
    return True if pair.prediction_words == pair.gold_words else None


def _refusal(pair: Pair) -> bool | None:
    """The prediction refuses to answer, and the answer is no such text itself."""
    return False if refused(pair.prediction) and not refused(pair.gold) else None


def _yes_or_no(pair: Pair) -> bool | None:
    """The answer is yes or no, or begins with it: the prediction begins with the same word or states the same."""
    expected, predicted = polarity(pair.gold_words), polarity(pair.prediction_words)
    if expected is None:
        return None
    if predicted is None:
        predicted = affirmed(pair)
    if predicted is None and len(pair.gold_words.split()) > 1:
        return None
    return expected == predicted


def _option(pair: Pair) -> bool | None:
    """The question is "A or B?": the prediction claims the option that the answer claims."""
    options = _options(pair)
    if len(options) < 2:
        return None
    expected = claimed_option(pair.gold, options, pair.lower_question)
    if expected is None:
        return None
    predicted = claimed_option(pair.prediction, options, pair.lower_question)
    if predicted is None and surname(expected, pair.question, pair.prediction_words):
        predicted = (
            expected
            if not any(surname(o, pair.question, pair.prediction_words) for o in options if o != expected)
            else None
        )
        return predicted is not None and not _denied_words(pair, expected.split()[-1])
    return predicted == expected and not _denied_words(pair, predicted) and not has_words(pair.prediction_words, "or")


def _options(pair: Pair) -> list[str]:
    """The two options of a question "A or B?", each as far as the answer or the prediction contains it."""
    if " or " not in pair.lower_question:
        return []
    before, _, after = pair.lower_question.rpartition(" or ")
    left = words(re.split(r"[,:;]", before)[-1])
    right = words(re.split(r"[,:;]", after)[0])
    return [text for text in (_longest(left.split(), pair, tail=True), _longest(right.split(), pair)) if text]


def _longest(side: list[str], pair: Pair, *, tail: bool = False) -> str:
    """The longest end (``tail``) or start of a side that the answer or prediction contains, else the whole side."""
    runs = [" ".join(side[-n:] if tail else side[:n]) for n in range(len(side), 0, -1)]
    runs = [run for run in runs if set(run.split()) - STOP]
    for run in runs:
        if has_words(pair.gold_words, run) or has_words(pair.prediction_words, run):
            return run
    return runs[0] if runs else ""


def _date(pair: Pair) -> bool | None:
    """The answer is a date, or has one date and the question asks "when": all dates of the prediction are that date."""
    expected = _expected_date(pair)
    if expected is None:
        return None
    in_question = [_key(date) for date in _dates(pair.lower_question)]
    predicted = [date for date in _dates(pair.prediction) if _key(date) not in in_question or same_date(date, expected)]
    if expected.month is None:  # a year; a full date in that year is correct too
        predicted = [date for date in predicted if date.year is not None]
    if not all(same_date(date, expected) for date in predicted):
        return False
    return bool(predicted) and not denied(pair.prediction, *predicted[0].span)


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


def _quantity(pair: Pair) -> bool | None:
    """The answer is a number, or has one that the question asks for: all numbers of the prediction equal it."""
    expected = _expected_quantity(pair)
    if expected is None:
        return None
    in_question = {q.value for q in quantities(pair.lower_question)}
    predicted = [q for q in quantities(pair.prediction) if q.value not in in_question or same_quantity(q, expected)]
    predicted = [q for q in predicted if not q.year or same_quantity(q, expected)]  # "in 2023" beside a count
    predicted = claimed_numbers(predicted, expected, pair)
    if not all(same_quantity(q, expected) for q in predicted):
        return False
    return bool(predicted) and not denied(pair.prediction, *predicted[0].span)


def _expected_quantity(pair: Pair) -> Quantity | None:
    numbers = quantities(pair.gold)
    if not numbers:
        return None
    beside = len(content(pair.gold[: numbers[0].span[0]]) | content(pair.gold[numbers[0].span[1] :]))
    how_many = bool(HOW_MANY.search(pair.lower_question))
    if len(numbers) == 1 and (beside == 0 or (beside <= 3 and how_many)):  # not the film "12 monkeys"
        return numbers[0]
    in_question = {q.value for q in quantities(pair.lower_question)}
    new = {q.value: q for q in numbers if q.value not in in_question and not q.year}
    return next(iter(new.values())) if len(new) == 1 and how_many else None


def _listed(pair: Pair) -> bool | None:
    """The answer is a list: the prediction has exactly the same items, numbers in the same order, names in any."""
    expected = items(pair.gold)
    if len(expected) < 2 or any(len(item.split()) > LIST_WORDS for item in expected):
        return None
    predicted = items(pair.prediction)
    hedged = has_words(pair.prediction_words, "or") and not has_words(pair.gold_words, "or")
    if hedged or len(predicted) != len(expected):
        return False
    if all(len(quantities(item)) == 1 and not dates(item) for item in expected):
        return all(_same_item(candidate, item) for candidate, item in zip(predicted, expected, strict=True))
    remaining = list(predicted)
    for item in expected:
        match = next((candidate for candidate in remaining if _same_item(candidate, item)), None)
        if match is None:
            return False
        remaining.remove(match)
    return True


def _same_item(predicted: str, item: str) -> bool:
    """Equal as dates, numbers, or words; further words are allowed before or after an item of a sentence."""
    if dates(item):
        return any(same_date(value, dates(item)[0]) for value in dates(predicted))
    if re.fullmatch(r"[\W\d]*", item) and quantities(item):
        return any(same_quantity(value, quantities(item)[0]) for value in quantities(predicted))
    want, have = words(item), words(predicted)
    return (
        bool(want)
        and not DENIALS.search(predicted)
        and (have == want or have.endswith(f" {want}") or have.startswith(f"{want} "))
    )


def _held(pair: Pair) -> bool | None:
    """The prediction contains the whole answer, does not negate it, and offers no alternative to it."""
    if not has_words(pair.prediction_words, pair.gold_words) or not set(pair.gold_words.split()) - STOP:
        return None
    before, _, after = f" {pair.prediction_words} ".partition(f" {pair.gold_words} ")
    beside = before.split()[-1:] + after.split()[:1]
    if candidates(pair.gold, pair.prediction, pair.question) or only_mentioned(
        pair.gold, pair.prediction, pair.question
    ):
        return False
    return not _denied_words(pair, pair.gold_words) and "or" not in beside


def _denied_words(pair: Pair, phrase: str) -> bool:
    """Whether the prediction negates the first occurrence of a phrase; both in normal form."""
    text = f" {pair.prediction_words} "
    start = text.find(f" {phrase} ")
    return denied(text, start, start + len(phrase) + 1)


def _named(pair: Pair) -> bool | None:
    """The prediction is the subject of the answer's sentence, or follows its copula."""
    prediction, gold = pair.prediction_words.split(), pair.gold_words.split()
    if not prediction or len(gold) <= len(prediction):
        return None
    if not content(pair.prediction) - content(pair.question):
        return None
    for start in range(len(gold) - len(prediction) + 1):
        if gold[start : start + len(prediction)] == prediction:
            before, after = gold[start - 1 : start], gold[start + len(prediction) : start + len(prediction) + 1]
            subject = not before and after[0] in VERBS
            said_of = (
                bool(before) and before[0] in COPULAS and (not after or after[0] in VERBS | {"and"} or _ends(pair))
            )
            if subject or (said_of and "and" not in after):
                return True
    return None


def _ends(pair: Pair) -> bool:
    """Whether the prediction is followed by punctuation in the answer."""
    return bool(re.search(re.escape(pair.prediction.lower().strip(" .")) + r"\s*[,.;(]", pair.gold.lower()))


def _covered(pair: Pair) -> bool | None:
    """The prediction has most words of the answer that are not in the question, and all its numbers."""
    added = content(pair.gold) - content(pair.question)
    if len(added) < 2:
        return None
    covered = len(added & content(pair.prediction)) / len(added) >= COVER
    numbers = quantities(pair.prediction)
    same_numbers = all(any(same_quantity(have, want) for have in numbers) for want in quantities(pair.gold))
    agree = bool(DENIALS.search(pair.prediction.lower())) == bool(DENIALS.search(pair.gold.lower()))
    return covered and same_numbers and agree and "or" not in pair.prediction_words.split()


def _denial(pair: Pair) -> bool | None:
    """The answer denies what the question assumes: the prediction denies it in most of the same words."""
    asked = content(pair.gold)
    if len(asked) < 2 or not all(_NO.search(text.lower()) for text in (pair.gold, pair.prediction)):
        return None
    return True if len(asked & content(pair.prediction)) >= SAME * len(asked) else None


RULES: dict[str, Callable[[Pair], bool | None]] = {
    "equal": _equal,
    REFUSAL: _refusal,
    "yes or no": _yes_or_no,
    "option": _option,
    "date": _date,
    "list": _listed,
    "number": _quantity,
    "held": _held,
    "named": _named,
    "denial": _denial,
    "covered": _covered,
}
