"""Questions that offer "A or B", or ask to choose "between A and B": which of them does a text claim?

"Ford is worth less than Apple" claims Apple if the question asks for the larger one, and so does "Ford is worth less".
The text after "so" or "therefore" is the conclusion and decides. A text with sentences that claim different options
claims none. The last word of an option stands for it ("Durant") if nothing else in the question has that word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import partial

from lm_eval_rag.harness.scoring.judge.reading import STOP, Pair, content, denied_phrase, words
from lm_eval_rag.harness.scoring.judge.values import quantities
from lm_eval_rag.harness.scoring.normalise import has_words

_OPPOSITES = [  # the words of one dimension: more, less
    (
        "first earlier earliest before older oldest sooner",
        "last later latest after younger youngest newer newest recent",
    ),
    (
        "more most larger largest bigger biggest greater greatest higher highest taller tallest longer longest heavier "
        "richer above exceeds outnumbers farther further",
        "less least fewer fewest smaller smallest lower lowest shorter shortest lighter poorer below cheaper",
    ),
    ("faster fastest quicker", "slower slowest"),
    ("better best", "worse worst"),
]
SIDES = {word: (i, side) for i, pair in enumerate(_OPPOSITES) for side in (0, 1) for word in pair[side].split()}
_CONCLUSION = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|which means|which makes|meaning|the answer is)\b"
    r"(?: that\b)?[,:]?|:\s*(?=[^:,.;]{1,40}[.!]?$)"
)
_ASIDE = re.compile(r"^(?:compared (?:to|with)|unlike|in contrast to|next to|while|whereas|although)\b[^,]*,\s*")
_SENTENCES = re.compile(r"(?<=\w\w\w)[.;!?]\s+")  # not after "jr."
_EQUALLY = re.compile(r"\b(?:both|neither|same|equal|equally|tied|identical)\b")
_THAN = re.compile(r"\w+(?: \w+){0,2} than (?:the )?$")
_NOBODY = re.compile(r"\b(?:nobody|nothing|no(?: \w+){1,2} (?:is|was|has|are|were|have))\b")
_BESIDE = STOP | {"far", "much", "slightly", "came", "comes", "one"}  # between a name and what is said of it
_BETWEEN = re.compile(r"\bbetween (?!\d)(.+) and (.+)")
_AMOUNT = re.compile(r"\bhow (?:many|much)\b|\bdifference\b")
_GENERATIONS = frozenset({"jr", "sr", "ii", "iii", "iv"})
WHOLE_NAME = 3  # maximum number of words of an option that neither the answer nor the prediction contains


def option_claimed(pair: Pair) -> bool | None:
    """The question offers two options: the prediction claims the one that the answer claims."""
    pair = Pair(*(re.sub(r"['’]s\b", "", text) for text in (pair.question, pair.gold, pair.prediction)))
    question, options = pair.lower_question, _options(pair)
    if len(options) < 2:
        return None
    expected = claimed_option(_spelled_out(pair.gold, options, question), options, question)
    if expected is None:
        return None
    prediction = _spelled_out(pair.prediction, options, question)
    claimed = claimed_option(prediction, options, question) or _fragment(pair, options)
    spoken = words(prediction)
    return claimed == expected and not denied_phrase(spoken, claimed) and not has_words(spoken, "or")


def _options(pair: Pair) -> list[str]:
    """The two options of a question, each as far as the answer or the prediction contains it."""
    question = pair.lower_question
    if " or " in question:
        before, _, after = question.rpartition(" or ")
    else:
        match = None if side(question) is None or _AMOUNT.search(question) else _BETWEEN.search(question)
        before, after = match.groups() if match else ("", "")
    parts = words(re.split(r"[,:;]", before)[-1]).split(), words(re.split(r"[,:;]", after)[0]).split()
    left, right = _longest(parts[0], pair, tail=True), _longest(parts[1], pair)
    if has_words(left, right) or has_words(right, left):  # "tom" of Tom Cruise, since the answer is Tom Hanks
        left, right = max(left, _short(parts[0], tail=True), key=len), max(right, _short(parts[1]), key=len)
    return [text for text in (left, right) if text]


def _longest(part: list[str], pair: Pair, *, tail: bool = False) -> str:
    """The longest end (``tail``) or start of a part that the answer or prediction contains, else a short one."""
    for run in _runs(part, tail=tail):
        if has_words(pair.gold_words, " ".join(run)) or has_words(pair.prediction_words, " ".join(run)):
            return " ".join(run)
    return _short(part, tail=tail)


def _short(part: list[str], *, tail: bool = False) -> str:
    """The last (``tail``) or first few words of a part, without stop words."""
    runs = [run for run in _runs(part, tail=tail) if len(run) <= WHOLE_NAME]
    return " ".join(word for word in runs[0] if word not in STOP) if runs else ""


def _runs(part: list[str], *, tail: bool) -> list[list[str]]:
    """All ends or starts of a part that have a word that is no stop word, longest first."""
    runs = [part[-n:] if tail else part[:n] for n in range(len(part), 0, -1)]
    return [run for run in runs if set(run) - STOP]


def _spelled_out(text: str, options: Sequence[str], question: str) -> str:
    """The text in lower case with options in full: without "'s", and "Durant" and "Kevin" as "kevin durant"."""
    asked = words(question).split()
    for option in options:
        text = re.sub(rf"\b({re.escape(option)})['’]s\b", r"\1", text, flags=re.IGNORECASE)
        name = [word for word in option.split() if word not in _GENERATIONS]
        known = (STOP | set(asked)) - set(name)
        for part in dict.fromkeys((name[0], name[-1])) if 1 < len(name) <= WHOLE_NAME else ():
            if part.isalpha() and len(part) > 2 and part not in STOP and asked.count(part) == 1:
                pattern = rf"(?P<before>(?<!\S)\S{{0,40}})(?P<space>\s*)\b{part}\b(?:['’]s\b)?(?P<after>(?:\s+\S+)?)"
                text = re.sub(pattern, partial(_in_full, option=option, known=known), text, flags=re.IGNORECASE)
    return text.lower()


def _in_full(match: re.Match[str], option: str, known: Set[str]) -> str:
    """The option in place of one word of it, unless a name stands beside it: "Miami Pitt" is not Brad Pitt."""
    named = match.string != match.string.lower()
    for beside in (match["before"], match["after"].strip()):
        word = beside.strip(".,;:!?()\"'").lower()
        apart = beside is match["before"] and not beside[-1:].isalpha()
        if word and not apart and word not in known and (beside[:1].isupper() or not named):
            return match[0]
    return f"{match['before']}{match['space']}{option}{match['after']}"


def _fragment(pair: Pair, options: Sequence[str]) -> str | None:
    """The only option that has all words of the prediction: "LeBron" for "lebron james"."""
    said = content(pair.prediction)
    holding = [option for option in options if said and said <= set(option.split())]
    return holding[0] if len(holding) == 1 else None


def claimed_option(text: str, options: Sequence[str], question: str) -> str | None:
    """The option that a text claims, or None if it claims none or more than one.

    Args:
        text: A gold answer or a prediction.
        options: In normal form.
        question: In lower case.
    """
    conclusions = _CONCLUSION.split(text.lower())
    for part in reversed(conclusions):
        spoken = words(_ASIDE.sub("", part.strip()))
        places = _places(spoken, options)
        if places:
            compared = _compared(part, options, question)
            if len(compared) > 1 or (_EQUALLY.search(spoken) and len(places) > 1):
                return None
            return compared.pop() if compared else _claimed(spoken, places, options, question)
    return None


def _compared(text: str, options: Sequence[str], question: str) -> set[str]:
    """The options that sentences of a text claim with a word of comparison like the question's."""
    asked, claims = side(question), set()
    for sentence in _SENTENCES.split(text):
        spoken = words(_ASIDE.sub("", sentence.strip()))
        places, said = _places(spoken, options), side(spoken)
        if places and asked and said and asked[0] == said[0] and not _EQUALLY.search(spoken):
            claims.add(_claimed(spoken, places, options, question))
    return claims


def _places(text: str, options: Sequence[str]) -> dict[str, int]:
    """Option -> its first position in the text; an option within a longer one at the same place is left out."""
    positions = {option: f" {text} ".find(f" {option} ") for option in options}
    present = {option: at for option, at in positions.items() if at >= 0}
    longest = {
        option: at
        for option, at in present.items()
        if not any(other != option and has_words(other, option) and at - len(other) < start <= at
                   for other, start in present.items())
    }  # fmt: skip
    return dict(sorted(longest.items(), key=lambda pair: pair[1]))


def _claimed(text: str, places: dict[str, int], options: Sequence[str], question: str) -> str:
    names = list(places)
    if len(names) == 1:
        return _other(text, names[0], options, question) or names[0]
    first, second = names[0], names[1]
    between = text[places[first] + len(first) : places[second]]
    asked, said = side(question), side(between)
    if re.search(r"\b(?:than|before|after)\b\W*$", between.strip()):
        opposite = asked is not None and said is not None and asked[0] == said[0] and asked[1] != said[1]
        return second if opposite else first
    after = text[places[second] + len(second) :]
    if asked is not None and said is None and side(after) == asked:
        return second  # "A was built in 1900 and B is older"
    return _by_numbers(names, between, after, asked) if asked is not None and said is None else first


def _by_numbers(names: Sequence[str], between: str, after: str, asked: tuple[int, int]) -> str:
    """Of two options with one number each, that with the larger one, or the smaller one; else the first.

    Of two years the smaller one is the older; other numbers do not decide on time.
    """
    numbers = [quantities(text) for text in (between, after)]
    if any(len(one) != 1 for one in numbers) or side(after) is not None:
        return names[0]
    (one,), (other,) = numbers
    comparable = one.unit == other.unit and one.year == other.year and one.value != other.value
    if not comparable or asked[0] > 1 or (asked[0] == 0 and not one.year) or (asked[0] == 1 and one.year):
        return names[0]
    first_is_more = one.value > other.value
    wants_more = (asked[1] == 0) != (asked[0] == 0)
    return names[0] if first_is_more == wants_more else names[1]


def _other(text: str, name: str, options: Sequence[str], question: str) -> str:
    """The other option, if a text says the opposite of what is asked of the only option that it names, else ""."""
    asked, said = side(question), side(text)
    others = [option for option in options if option != name]
    if len(others) == 1 and asked is not None and (compared := _THAN.search(text[: text.index(name)])):
        more = side(compared[0]) == asked and not _NOBODY.search(text)
        return others[0] if more else ""  # "Shaq is taller than Yao Ming"
    opposite = asked is not None and said is not None and asked[0] == said[0] and asked[1] != said[1]
    if not opposite or len(others) != 1 or has_words(text, "than"):
        return ""
    start, word = text.index(name), next(word for word in text.split() if word in SIDES)
    at = f" {text} ".index(f" {word} ")
    between = text[start + len(name) : at] if start < at else text[at + len(word) : start]
    near = set(between.split()) <= (_BESIDE | content(question)) - {"who", "which", "that"}
    return others[0] if near else ""


def side(text: str) -> tuple[int, int] | None:
    """(dimension, more or less) of the first word of comparison in a text."""
    return next((SIDES[word] for word in words(text).split() if word in SIDES), None)
