"""Text analysis for the rule judge: words, lists and negations in questions, answers and predictions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from lm_eval_rag.harness.scoring.normalise import normalise

STOP = frozenset(
    re.findall(
        r"\w+",
        "a an the and or of in on at to for from by with as is was are were be been being has have had do does did it "
        "its that this these those there he she they his her their who which what when where how many much total "
        "number s than more most about all also both not no",
    )
)
SIGNS = {"%": "percent", "$": "dollars", "€": "euros", "£": "sterling", "¥": "yen"}
_CONTRACTED = "(?:is|was|are|were|did|does|do|has|have|had|would|could)n.?t"
_NOT = f"not|never|neither|nor|{_CONTRACTED}"
DENIALS = re.compile(rf"\b(?:{_NOT}|rather than|instead of)\b")
_DENIED_AFTER = re.compile(rf"^ ?(?:\w+ (?:{_NOT})|{_CONTRACTED})\b")
NEAR = 25  # a negation applies to a word at most this many characters after it
HOW_MANY = re.compile(
    r"\b(?:how (?:many|much|old|long|far|tall|big|high|large)|what (?:percentage|percent|number)|number of|age|price|"
    r"earnings per share|ratio|yield|market cap\w*|volume|revenue|budget|population|average)\b"
)
WHEN = re.compile(r"\b(?:when|(?:what|which) (?:year|date|day|month)|date of)\b")


@dataclass(frozen=True)
class Pair:
    """One question with one gold answer and a prediction; the forms of each text are computed once."""

    question: str
    gold: str
    prediction: str

    @cached_property
    def lower_question(self) -> str:
        """The question in lower case."""
        return self.question.lower()

    @cached_property
    def question_words(self) -> str:
        """The question's words."""
        return words(self.question)

    @cached_property
    def gold_words(self) -> str:
        """The gold answer's words."""
        return words(self.gold)

    @cached_property
    def prediction_words(self) -> str:
        """The prediction's words."""
        return words(self.prediction)


def words(text: str) -> str:
    """The normal form of answers, but decimals, signs and units stay distinct: 3.5 and 35, -3 and 3, 3 % and $3."""
    marked = re.sub(r"(?<=\d)[.](?=\d)", "ppointt", re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))
    marked = re.sub(r"(?<![\w.])[-−](?=[$€£]?\d)", " minuss ", marked)
    marked = re.sub(r"[%$€£¥]", lambda sign: f" {SIGNS[sign[0]]} ", marked)
    return normalise(marked).replace("ppointt", ".").replace("minuss ", "-")


def content(text: str) -> set[str]:
    """The set of words without stop words."""
    return set(words(text).split()) - STOP


def denied(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` is negated: "not A", "A is not"; but not "A, not B"."""
    low = text.lower()
    return bool(DENIALS.search(low[max(0, start - NEAR) : start]) or _DENIED_AFTER.search(low[end:]))


def items(text: str) -> list[str]:
    """The items of a list in prose, in lower case, without text in parentheses."""
    bare = re.sub(r"\([^)]*\)", " ", text.lower().strip(" .\n"))
    safe = re.sub(r"([a-z]\.?\s\d{1,2}(?:st|nd|rd|th)?),(\s+\d{4})\b", r"\1 \2", bare)  # the comma of "march 3, 2024"
    parts = re.split(r"\s*[;\n•]\s*|,(?!\d{3}\b)\s*(?:and\s+|&\s*)?|\s+and\s+|\s+&\s+", safe)
    return [part.strip() for part in parts if part.strip()]
