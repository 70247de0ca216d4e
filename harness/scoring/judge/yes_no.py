"""Yes and no: what a text answers to a question that asks for it, in any words."""

from __future__ import annotations

import re
from itertools import takewhile

from lm_eval_rag.harness.scoring.judge.option_claims import SIDES, side
from lm_eval_rag.harness.scoring.judge.reading import DENIALS, STOP, Pair, content

ENOUGH = 0.6  # share of a yes-or-no question's words that a statement must repeat to affirm it
_AUXILIARY = "is|are|was|were|can|could|did|does|do|has|have|had|will|would|should|may"
_ASKED = re.compile(rf"^\W*(?:[^,?]*, )?(?:{_AUXILIARY})\b")
_END = r"(?=\W*$|\s*[,.;:!–—-]|\s+(?:because|since|as|but)\b"
_FILL = re.compile(r"^\W*(?:(?:actually|well|in fact|(?:based on|according to) [^,]*),\s*)+")
_TRUE = re.compile(
    r"^\W*(?:(?:that|this|it)(?:'s| is) )?(?:correct|right|true|absolutely|definitely|certainly|of course|sure|"
    r"affirmative)"
    rf"\b{_END})|^\W*indeed\b"
)
_FALSE = re.compile(
    rf"^\W*(?:(?:that|this|it)(?:'s| is) )?(?:incorrect|false|wrong|negative|untrue)\b{_END})"
    r"|^\W*not (?:really|exactly|quite|yet|at all|necessarily|true)\b"
    r"|^\W*(?:that|this|it)(?:'s| is)(?: not|n't) (?:correct|right|true|the case)\b"
)
# "It is.", "They did not."
_SHORT = re.compile(
    rf"^\W*(?:indeed\W+)?(?:it|he|she|they|this|that|there|both|we|you|i) "
    rf"(?:(?:certainly|definitely|indeed|surely|still) )?(?:{_AUXILIARY})( not|n't)?{_END})"
)
_ORDER = frozenset({"first", "last", "before", "after", "recent"})  # they compare no sizes in "his first film"
_COMPARING = re.compile(r" (than|before|after) ")
_CLOSING = re.compile(r"[,;–—:]\s*(?:so |hence |therefore )?(yes|no)\W*$")  # "Botanically speaking, yes."
_BOTH = re.compile(r"^\W*(?:yes and no|yes or no)\b")


def yes_or_no(pair: Pair) -> bool | None:
    """The answer is yes or no, or begins with it: the prediction begins with the same word or states the same."""
    expected = _answered(pair)
    if expected is None:
        return None
    claimed = _polarity(pair.prediction_words) if not _BOTH.match(pair.prediction.lower()) else None
    if claimed is None:
        claimed = _short_answer(pair.prediction)
    if claimed is None:
        claimed = affirmed(pair)
    if claimed is None and len(pair.gold_words.split()) > 1:
        return None
    return expected == claimed


def _answered(pair: Pair) -> bool | None:
    """What the answer says. "No Country for Old Men" says neither."""
    alone = len(pair.gold_words.split()) == 1 or re.match(r"\W*\w+\W*[,.;:!–—-]", pair.gold)
    return _polarity(pair.gold_words) if alone or _ASKED.search(pair.lower_question) else None


def _polarity(text: str) -> bool | None:
    """What a normal form begins with: True for yes, False for no."""
    return {"yes": True, "yeah": True, "yep": True, "no": False, "nope": False}.get(text.partition(" ")[0])


def _short_answer(text: str) -> bool | None:
    """What an answer without yes or no says: "Correct.", "It isn't."; None if it is longer or no such answer."""
    low = _FILL.sub("", text.lower().replace("’", "'"))
    if closing := _CLOSING.search(low):
        return closing[1] == "yes"
    short = _SHORT.match(low)
    if short is not None:
        return short[1] is None
    if _FALSE.match(low):
        return False
    first = re.split(r"[.;!?]", low)[0]
    return True if _TRUE.match(low) and not DENIALS.search(first) else None


def affirmed(pair: Pair) -> bool | None:
    """Whether a statement affirms (True) or denies (False) a yes-or-no question; None if that is not clear.

    A denial shares a word with the question. An affirmation repeats most of its words and all of its numbers, and the
    two things that it compares stand in the question's order, or their comparison is turned around as well.
    """
    question, statement = pair.lower_question, pair.prediction.lower()
    asked = content(pair.question)
    shared = asked & content(pair.prediction)
    if not _ASKED.search(question) or not shared:
        return None
    if DENIALS.search(statement) or re.search(r"\bno\b", statement):
        return None if DENIALS.search(question) else False
    if re.findall(r"\d+", question) and not set(re.findall(r"\d+", question)) <= set(re.findall(r"\d+", statement)):
        return None
    if _opposed(pair):
        return False
    reversed_order = _reversed(pair)
    if reversed_order is not None:
        return not reversed_order
    return True if len(shared) >= ENOUGH * len(asked) else None


def _opposed(pair: Pair) -> bool:
    """Whether a statement that compares no two things says the opposite: "below 100" to "above 100?"."""
    asked, said = side(pair.question_words), side(pair.prediction_words)
    spoken = {*pair.question_words.split(), *re.sub(r"\bthan (?=\d)", "", pair.prediction_words).split()}
    if asked is None or said is None or spoken & (_ORDER | {"than"}):
        return False
    return asked[0] == said[0] and asked[1] != said[1]


def _names(text: str) -> set[str]:
    return {*text.split()} - STOP - SIDES.keys()


def _until_compared(text: str) -> str:
    """What precedes the first word of comparison: "is gold" of "is gold more expensive"."""
    return " ".join(takewhile(lambda word: word not in SIDES, text.split()))


def _reversed(pair: Pair) -> bool | None:
    """Whether "A is older than B?" is answered by "B is older than A" or "A is younger"; None if that is not clear.

    "A before B?" likewise, by "B before A" or "A after B".
    """
    asked, said = _COMPARING.split(pair.question_words, maxsplit=1), _COMPARING.split(pair.prediction_words, maxsplit=1)
    if len(asked) < 3:
        return None
    left, right = _names(_until_compared(asked[0])) or _names(asked[0]), _names(asked[2])
    sides = side(" ".join(asked[:2])), side(" ".join(said[:2]))
    before, after = {*said[0].split()}, {*said[-1].split()}
    if len(said) > 1:
        straight, crossed = bool(left & before and right & after), bool(right & before and left & after)
    else:
        straight, crossed = None not in sides and bool(left & before), None not in sides and bool(right & before)
    turned = None not in sides and sides[0] != sides[1]
    return crossed != turned if straight != crossed else None
