"""Questions that offer "A or B", and yes or no: which of them does a text claim?

"Ford is worth less than Apple" claims Apple if the question asks for the larger one. The text after "so" or "therefore"
is the conclusion and decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lm_eval_rag.harness.scoring.judge.reading import DENIALS, STOP, Pair, content, words
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
_SIDES = {word: (i, side) for i, pair in enumerate(_OPPOSITES) for side in (0, 1) for word in pair[side].split()}
_CONCLUSION = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|which means|which makes|meaning|the answer is)\b"
    r"(?: that\b)?[,:]?"
)
_ASIDE = re.compile(r"^(?:compared (?:to|with)|unlike|in contrast to|next to|while|whereas|although)\b[^,]*,\s*")
_EQUALLY = re.compile(r"\b(?:both|neither|same|equal|equally|tied|identical)\b")
_VERB = re.compile(
    r"^\W*(?:(?:in|on|at|as of) [^,]*, )?(?:is|are|was|were|can|could|did|does|do|has|have|had|will|would|should|may)\b"
)
ENOUGH = 0.6  # share of a yes-or-no question's words that a statement must repeat to affirm it


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
            return None if _EQUALLY.search(spoken) and len(places) > 1 else _claimed(spoken, places, question)
    return None


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


def _claimed(text: str, places: dict[str, int], question: str) -> str:
    names = list(places)
    if len(names) == 1:
        return names[0]
    first, second = names[0], names[1]
    between = text[places[first] + len(first) : places[second]]
    asked, said = _side(question), _side(between)
    if re.search(r"\b(?:than|before|after)\b\W*$", between.strip()):
        opposite = asked is not None and said is not None and asked[0] == said[0] and asked[1] != said[1]
        return second if opposite else first
    if asked is not None and said is None and _side(text[places[second] + len(second) :]) == asked:
        return second  # "A was built in 1900 and B is older"
    return first


def _side(text: str) -> tuple[int, int] | None:
    """(dimension, more or less) of the first word of comparison in a text."""
    return next((_SIDES[word] for word in words(text).split() if word in _SIDES), None)


def surname(option: str, question: str, text: str) -> bool:
    """Whether a text names an option of two capitalised words by the last of them: "Phelps"."""
    parts = option.split()
    if len(parts) < 2 or not has_words(text, parts[-1]):
        return False
    written = r"\s+".join(rf"(?-i:[A-ZÀ-Þ]){re.escape(part[1:])}" for part in parts)
    return bool(re.search(rf"\b{written}\b", question)) and len(re.findall(rf"\b{parts[-1]}\b", question.lower())) == 1


def polarity(text: str) -> bool | None:
    """What a normal form begins with: True for yes, False for no."""
    return {"yes": True, "yeah": True, "no": False, "nope": False}.get(text.partition(" ")[0])


def affirmed(pair: Pair) -> bool | None:
    """Whether a statement affirms (True) or denies (False) a yes-or-no question; None if that is not clear.

    A denial shares a word with the question. An affirmation repeats most of its words and all of its numbers, and the
    two things that it compares stand in the question's order, or their comparison is turned around as well.
    """
    question, statement = pair.lower_question, pair.prediction.lower()
    asked = content(pair.question)
    shared = asked & content(pair.prediction)
    if not _VERB.search(question) or not shared:
        return None
    if DENIALS.search(statement) or re.search(r"\bno\b", statement):
        return None if DENIALS.search(question) else False
    if re.findall(r"\d+", question) and not set(re.findall(r"\d+", question)) <= set(re.findall(r"\d+", statement)):
        return None
    reversed_order = _reversed(pair)
    if reversed_order is not None:
        return not reversed_order
    return True if len(shared) >= ENOUGH * len(asked) else None


def _reversed(pair: Pair) -> bool | None:
    """Whether "A is older than B?" is answered by "B is older than A" (or "A is younger than B"); None if neither."""
    asked, said = words(pair.lower_question), pair.prediction_words
    if " than " not in asked or " than " not in said:
        return None
    left, right = ({*side.split()} - STOP - _SIDES.keys() for side in asked.split(" than ", 1))
    before = {*said.split(" than ", 1)[0].split()}
    if not left or not right or bool(left & before) == bool(right & before):
        return None
    sides = _side(asked), _side(said)
    turned = None not in sides and sides[0] != sides[1]
    return bool(right & before) != turned
