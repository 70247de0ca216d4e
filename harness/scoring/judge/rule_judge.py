"""The judge that needs no model: an ordered table of rules, the first that has an opinion decides.

It leans to "wrong": a prediction that hedges ("A or B"), denies ("not A"), adds a second number or list item, or says
the right thing in quite other words is not accepted. How often it errs, and which way, is what
``lm-eval-rag judge-check`` measures. Each rule is a function of one answer and one prediction that returns True, False,
or None for no opinion; a prediction is correct if it is so for one of the answers.

Golds that are sentences are read for what answers the question: the option that the question offered, the one number
that a "how many" asks for, the one date that a "when" asks for, the name at the start or end that the question lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

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
from lm_eval_rag.harness.scoring.judge.values import Date, Quantity, dates, quantities, same_date, same_quantity
from lm_eval_rag.harness.scoring.normalise import has_words

VERSION = "1"  # raise it with every change of a verdict
LIST_WORDS = 6  # of an item of a list, at most
COVER = 0.9  # share of a long answer's own words that a paraphrase must hold
COPULAS = frozenset({"is", "was", "are", "were", "be", "being", "named", "called"})
VERBS = COPULAS | {"has", "have", "had", "won", "did", "does", "became", "directed", "wrote", "played", "with", "who"}


def judge(question: str, answers: Sequence[str], given: str) -> tuple[float, str]:
    """(1 or 0, name of the rule that decided), the answers' best."""
    found = [_decide(Pair(question, gold, given)) for gold in answers]
    return max(found, key=lambda verdict: verdict[0], default=(0.0, "no answers"))


def _decide(pair: Pair) -> tuple[float, str]:
    for name, rule in RULES.items():
        opinion = rule(pair)
        if opinion is not None:
            return float(opinion), name
    return 0.0, "no rule"


def _equal(pair: Pair) -> bool | None:
    """The same words."""
    return True if pair.given_words == pair.gold_words else None


def _yes_or_no(pair: Pair) -> bool | None:
    """An answer that is yes or no, or begins so: the prediction must begin with the same."""
    wanted, said = _polarity(pair.gold_words), _polarity(pair.given_words)
    if wanted is None or (said is None and len(pair.gold_words.split()) > 1):
        return None
    return wanted == said


def _polarity(text: str) -> bool | None:
    return {"yes": True, "yeah": True, "no": False, "nope": False}.get(text.partition(" ")[0])


def _option(pair: Pair) -> bool | None:
    """A question "A or B?": the option that comes first in the answer must come first in the prediction."""
    options = _options(pair)
    if len(options) < 2:
        return None
    wanted = _first(pair.gold_words, options)
    if wanted is None:
        return None
    said = _first(pair.given_words, options)
    return said == wanted and not _denied_words(pair, said) and not has_words(pair.given_words, "or")


def _options(pair: Pair) -> list[str]:
    """What stands on both sides of "or" in the question, shortest readings first: up to four words each."""
    if " or " not in pair.asked:
        return []
    before, _, after = pair.asked.rstrip("?! ").rpartition(" or ")
    left = words(re.split(r"[,:;]", before)[-1])
    right = words(re.split(r"[,:;]", after)[0])
    return [text for text in (_longest(left.split(), pair, tail=True), _longest(right.split(), pair)) if text]


def _longest(side: list[str], pair: Pair, *, tail: bool = False) -> str:
    """The longest run of words at the end (``tail``) or start of a side that the answer or prediction repeats."""
    runs = [" ".join(side[-n:] if tail else side[:n]) for n in range(len(side), 0, -1)]
    runs = [run for run in runs if set(run.split()) - STOP]
    for run in runs:
        if has_words(pair.gold_words, run) or has_words(pair.given_words, run):
            return run
    return runs[0] if runs else ""


def _first(text: str, options: Sequence[str]) -> str | None:
    places = {option: f" {text} ".find(f" {option} ") for option in options}
    found = [option for option, place in places.items() if place >= 0]
    return min(found, key=lambda option: (places[option], -len(option))) if found else None


def _date(pair: Pair) -> bool | None:
    """An answer that is a date, or whose one date a "when" asks for: the prediction's dates are all that date."""
    wanted = _wanted_date(pair)
    if wanted is None:
        return None
    asked = [_key(date) for date in _dates(pair.asked)]
    said = [date for date in _dates(pair.given) if _key(date) not in asked or same_date(date, wanted)]
    if wanted.month is None:  # a year: a full date in it says it too
        said = [date for date in said if date.year is not None]
    return bool(said) and all(same_date(date, wanted) for date in said) and not denied(pair.given, *said[0].span)


def _key(date: Date) -> tuple[int | None, int | None, int | None]:
    return date.year, date.month, date.day


def _dates(text: str) -> list[Date]:
    """Dates, and numbers that may be years."""
    return [*dates(text), *(Date(int(q.value), span=q.span) for q in quantities(text) if q.year)]


def _wanted_date(pair: Pair) -> Date | None:
    found = _dates(pair.gold)
    whole = len(found) == 1 and not content(pair.gold[: found[0].span[0]] + " " + pair.gold[found[0].span[1] :])
    if whole and (found[0].month or WHEN.search(pair.asked)):
        return found[0]
    asked = {_key(date) for date in _dates(pair.asked)}
    new = {_key(date): date for date in found if _key(date) not in asked}
    return next(iter(new.values())) if len(new) == 1 and WHEN.search(pair.asked) else None


def _quantity(pair: Pair) -> bool | None:
    """An answer that is a number, or whose one number the question asks for: the prediction's numbers are all it."""
    wanted = _wanted_quantity(pair)
    if wanted is None:
        return None
    asked = {q.value for q in quantities(pair.asked)}
    said = [q for q in quantities(pair.given) if q.value not in asked or same_quantity(q, wanted)]
    years = wanted.year and WHEN.search(pair.asked)
    said = [q for q in said if years or not q.year or same_quantity(q, wanted)]  # "in 2023" beside a count
    return bool(said) and all(same_quantity(q, wanted) for q in said) and not denied(pair.given, *said[0].span)


def _wanted_quantity(pair: Pair) -> Quantity | None:
    found = quantities(pair.gold)
    if not found:
        return None
    beside = len(content(pair.gold[: found[0].span[0]]) | content(pair.gold[found[0].span[1] :]))
    if len(found) == 1 and (beside == 0 or (beside <= 3 and HOW_MANY.search(pair.asked))):  # not the film "12 monkeys"
        return found[0]
    asked = {q.value for q in quantities(pair.asked)}
    new = {q.value: q for q in found if q.value not in asked and not q.year}
    return next(iter(new.values())) if len(new) == 1 and HOW_MANY.search(pair.asked) else None


def _listed(pair: Pair) -> bool | None:
    """An answer that lists things: each is there once and no other is; numbers in order, names in any."""
    wanted = items(pair.gold)
    if len(wanted) < 2 or any(len(item.split()) > LIST_WORDS for item in wanted):
        return None
    said = items(pair.given)
    if len(said) != len(wanted) or (has_words(pair.given_words, "or") and not has_words(pair.gold_words, "or")):
        return False
    if all(len(quantities(item)) == 1 and not dates(item) for item in wanted):
        return all(_same_item(given, item) for given, item in zip(said, wanted, strict=True))
    left = list(said)
    for item in wanted:
        match = next((given for given in left if _same_item(given, item)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _same_item(given: str, item: str) -> bool:
    """Equal as a date, a number, or words; the first item of a sentence may have words before it, the last after."""
    if dates(item):
        return any(same_date(found, dates(item)[0]) for found in dates(given))
    if re.fullmatch(r"[\W\d]*", item) and quantities(item):
        return any(same_quantity(found, quantities(item)[0]) for found in quantities(given))
    want, have = words(item), words(given)
    return (
        bool(want)
        and not DENIALS.search(given)
        and (have == want or have.endswith(f" {want}") or have.startswith(f"{want} "))
    )


def _held(pair: Pair) -> bool | None:
    """The whole answer stands in the prediction, which neither denies it nor offers another beside it."""
    if not has_words(pair.given_words, pair.gold_words) or not set(pair.gold_words.split()) - STOP:
        return None
    before, _, after = f" {pair.given_words} ".partition(f" {pair.gold_words} ")
    beside = before.split()[-1:] + after.split()[:1]
    said, wanted = items(pair.given), items(pair.gold)
    if len(said) > max(2, len(wanted)) and all(len(item.split()) <= LIST_WORDS for item in said):
        return False  # one of a list of candidates
    return not _denied_words(pair, pair.gold_words) and "or" not in beside


def _denied_words(pair: Pair, phrase: str) -> bool:
    """Whether the prediction denies a phrase, both in normal form, at its first place."""
    text = f" {pair.given_words} "
    start = text.find(f" {phrase} ")
    return denied(text, start, start + len(phrase) + 1)


def _named(pair: Pair) -> bool | None:
    """The prediction is what the answer's sentence says of the question: its subject, or what follows a copula."""
    given, gold = pair.given_words.split(), pair.gold_words.split()
    if not given or len(gold) <= len(given) or has_words(pair.question_words, pair.given_words):
        return None
    if not content(pair.given) - content(pair.question):
        return None
    for start in range(len(gold) - len(given) + 1):
        if gold[start : start + len(given)] == given:
            before, after = gold[start - 1 : start], gold[start + len(given) : start + len(given) + 1]
            subject = not before and after[0] in VERBS
            said_of = (
                bool(before) and before[0] in COPULAS and (not after or after[0] in VERBS | {"and"} or _ends(pair))
            )
            if subject or (said_of and "and" not in after):
                return True
    return None


def _ends(pair: Pair) -> bool:
    """Whether punctuation follows the prediction in the answer."""
    return bool(re.search(re.escape(pair.given.lower().strip(" .")) + r"\s*[,.;(]", pair.gold.lower()))


def _covered(pair: Pair) -> bool | None:
    """Most of the words that the answer adds to the question are in the prediction, and every number of it."""
    own = content(pair.gold) - content(pair.question)
    if len(own) < 2:
        return None
    said = content(pair.given)
    numbers = all(any(same_quantity(have, want) for have in quantities(pair.given)) for want in quantities(pair.gold))
    agree = bool(DENIALS.search(pair.given.lower())) == bool(DENIALS.search(pair.gold.lower()))
    return len(own & said) / len(own) >= COVER and numbers and agree and "or" not in pair.given_words.split()


RULES: dict[str, Callable[[Pair], bool | None]] = {
    "equal": _equal,
    "yes or no": _yes_or_no,
    "option": _option,
    "date": _date,
    "list": _listed,
    "number": _quantity,
    "held": _held,
    "named": _named,
    "covered": _covered,
}
