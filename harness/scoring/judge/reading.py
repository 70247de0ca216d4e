"""Text analysis for the rule judge: words, lists and negations in questions, answers and predictions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
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
    r"\b(?:how (?:many|much|old|long|far|tall|big|high|large|fast|deep|wide|heavy)|what (?:percentage|percent|number)|"
    r"number of|age|price|earnings per share|ratio|yield|market cap\w*|volume|revenue|budget|population|average)\b"
)
WHEN = re.compile(r"\b(?:when|(?:what|which) (?:year|date|day|month)|date of)\b")


_MARKS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")  # accents on Latin letters; other scripts keep their vowel signs
_LETTERS = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "œ": "oe"})
_NUMBERED = re.compile(r"(?:^|(?<=\s))\(?(\d{1,2})[.)]\s+")
_BULLETS = re.compile(r"(?:^|(?<=\s))[*•]\s+")
_DASHES = re.compile(r"(?:^|(?<=\s))[-–—]\s+")
_DASHED = re.compile(r"(?:[^:]*:)?\s*[-–—]\s")  # a list with dashes begins with one
_LEAD = re.compile(r"^(?:(?:based on|according to) [^,:;]*|(?:in|as of) \d{4})[,:]\s*")  # before a list in a sentence
_OPENING = re.compile(
    r"^[\s*\"“]*(?:(?:based on|according to) (?:the|these|this|my) [^,:;.]*,\s*)?"
    r"(?:(?:the |my )?(?:final |correct |short )?answer(?: to (?:the|this|your) question)?"
    r"(?: is\b(?!\s+(?:not|un)):?|:)\s*)?",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r",\s*(?:who|which|whose|where)\b[^,;\n]*")
_SUFFIX = re.compile(r",(?=\s(?:inc|ltd|llc|corp|jr|sr)\b)")  # the comma of "Nike, Inc."
_DATE_COMMA = re.compile(r"([a-z]\.?\s\d{1,2}(?:st|nd|rd|th)?),(\s+\d{4})\b")  # the comma of "march 3, 2024"
_SEPARATORS = re.compile(
    r"\s*[;\n•]\s*|,(?!\d{3}\b)\s*(?:and\s+|&\s*)?|\s+and\s+|\s+&\s+|"
    r"\s+(?:vs\.?|versus|as well as|along with)\s+"
)
_ORDERED = ("in that order", "in order", "respectively")
_LINK = re.compile(r"^(?:then|also|both|finally|lastly)\s+")


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
    """The normal form of answers, but decimals, signs and units stay distinct: 3.5 and 35, -3 and 3, 3 %, $3 and 3+."""
    marked = re.sub(r"(?<=\d)[.](?=\d)", "ppointt", re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))
    marked = re.sub(r"(?<![\w.])[-−](?=[$€£]?\d)", " minuss ", marked)
    marked = re.sub(r"(?<=\d)\+(?!\s*\d)|(?<![-=])>(?=\s?\d)", " plus ", marked)
    marked = re.sub(r"[%$€£¥]", lambda sign: f" {SIGNS[sign[0]]} ", marked)
    return normalise(marked).replace("ppointt", ".").replace("minuss ", "-")


def content(text: str) -> set[str]:
    """The set of words without stop words."""
    return set(words(text).split()) - STOP


def from_question(word: str, asked: Set[str]) -> bool:
    """Whether a question has a word, or one that it begins with: "attended" and "attend"."""
    return word in asked or any(len(other) > 3 and word.startswith(other) for other in asked)


def denied(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` is negated: "not A", "A is not"; but not "A, not B"."""
    low = text.lower()
    return bool(DENIALS.search(low[max(0, start - NEAR) : start]) or _DENIED_AFTER.search(low[end:]))


def denied_phrase(text: str, phrase: str) -> bool:
    """Whether a text negates the first occurrence of a phrase; both in normal form."""
    start = f" {text} ".find(f" {phrase} ")
    return denied(f" {text} ", start, start + len(phrase) + 1)


def without_opening(text: str) -> str:
    """A prediction without "Based on the references, the answer is"."""
    return _OPENING.sub("", text) or text


def folded(text: str) -> str:
    """The text without accents on Latin letters: "Götze" -> "Gotze". Letters of other scripts are unchanged."""
    if text.isascii():
        return text
    bare = _MARKS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_LETTERS)


def items(text: str) -> list[str]:
    """The items of a list, in lower case, without text in parentheses.

    A list in prose, or one with numbers or bullets, on lines or not. A clause that begins with "who" or "which" is no
    item.
    """
    listed = _unmarked(text.lower().strip(" .\n"))
    bare = _RELATIVE.sub("", re.sub(r"\([^)]*\)", " ", _LEAD.sub("", listed)))
    parts = _SEPARATORS.split(_SUFFIX.sub("", _DATE_COMMA.sub(r"\1 \2", bare)))
    return [part for part in (_LINK.sub("", part.strip()) for part in parts) if part and part not in _ORDERED]


def _unmarked(text: str) -> str:
    """The text with semicolons for the numbers or bullets of a list, and without the words that lead to the list."""
    numbers = [int(number) for number in _NUMBERED.findall(text)]
    if len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1)):
        marked = _NUMBERED.sub("; ", text)
    else:
        marks = _DASHES if _DASHED.match(text) else _BULLETS
        if len(marks.findall(text)) < 2:
            return text
        marked = marks.sub("; ", text)
    lead, _, listed = marked.partition("; ")
    return listed if lead.rstrip().endswith(":") else marked
