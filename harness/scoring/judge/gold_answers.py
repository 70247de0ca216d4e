"""The answer within a gold answer that is a sentence: "The actress who played her is Ada Quill" -> "Ada Quill".

Five forms are read, and only if the sentence repeats words of the question: the part after its last "by", the part
after its only copula, the name in quotation marks, the subject, and the part that remains when words of the question
are removed at both ends. CRAG's answers are in lower case, so that capitals do not show a name. There the part after
the copula is the answer if the part before it repeats the question ("the members of the band are ...").
"""

from __future__ import annotations

import re
from functools import lru_cache

from lm_eval_rag.harness.scoring.judge.reading import DENIALS, STOP, content, from_question, items, words
from lm_eval_rag.harness.scoring.normalise import has_words

LONGEST = 6  # maximum number of words of a reduced answer, or of each of its items
RESTATED = 0.75  # share of the words of one part of the sentence that the question has
_COPULA = re.compile(r"\b(?:is|was|are|were)\b", re.IGNORECASE)
_BY = re.compile(r"^.*\b(?:is|was|are|were|been)\b(?:\s+[^\s,]+){1,4}\s+by\s+", re.IGNORECASE | re.DOTALL)
_SENTENCE = re.compile(r"(?<=\w{3})[.?!][\"”]?\s+(?=\w)")
_ASIDE = re.compile(r",\s*(?:with|which|who|whose|where|while|whereas|although|but|for|as of)\b.*$", re.DOTALL)
_WITHIN = re.compile(r",\s*(?:who|which)\b[^,]*,")
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|which|what|what's|who's|name|list|tell me|where)\b")
_TITLE = re.compile(r"\b(?:album|song|single|film|movie|book|novel|show|series|title|name)\b")
_EMPTY = frozenset(re.findall(r"\w+", "here currently moment now only called named titled following higher lower"))
_QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]")
_VERB = re.compile(
    r"\b(?:is|was|are|were|has|have|had|won|holds?|directed|wrote|released|became|received)\b", re.IGNORECASE
)


@lru_cache(maxsize=1 << 12)
def reduced(gold: str, question: str) -> str:
    """The answer within a gold answer, or "" if it is no sentence or has no such part."""
    asked = content(question)
    if len(gold.split()) < 4 or len(content(gold) & asked) < 1:
        return ""
    first = _SENTENCE.split(gold)[0]
    parts = [_after_by(gold), _after_copula(gold, asked), _between(gold, asked)]
    lower = question.lower()
    denial = DENIALS.search(gold.lower()) and not DENIALS.search(lower)
    if _ASKS_NAME.search(lower) and not re.search(r" (?:or|than) ", lower) and not denial:
        bare = _ASIDE.sub("", _WITHIN.sub(" ", first))
        parts = [_quoted(gold, lower), parts[0], _complement(bare, asked), _subject(bare, asked), *parts[1:]]
    return next((part for part in parts if part and _is_answer(part, asked)), "")


def _is_answer(part: str, asked: set[str]) -> bool:
    """Whether a part is short, or a list of short items, and says something that the question does not."""
    short = all(len(item.split()) <= LONGEST for item in items(part)) or len(part.split()) <= LONGEST
    return short and any(word not in _EMPTY and not from_question(word, asked) for word in content(part))


def _after_by(gold: str) -> str:
    match = _BY.match(gold)
    return gold[match.end() :].strip(" .") if match else ""


def _after_copula(gold: str, asked: set[str]) -> str:
    copulas = list(_COPULA.finditer(gold))
    if len(copulas) != 1:
        return ""
    before, after = gold[: copulas[0].start()], gold[copulas[0].end() :].strip(" .")
    starts_as_name = after[:1].isupper() or after[:1] in "\"'“"
    return after if starts_as_name and content(before) & asked else ""


def _complement(sentence: str, asked: set[str]) -> str:
    """What follows the last copula, if what precedes it repeats the question."""
    copulas = list(_COPULA.finditer(sentence))
    if not copulas:
        return ""
    before, after = content(sentence[: copulas[-1].start()]), sentence[copulas[-1].end() :].strip(" .:")
    return after if before and len(before & asked) >= RESTATED * len(before) else ""


def _subject(sentence: str, asked: set[str]) -> str:
    """What precedes the first verb, if what follows it repeats the question."""
    verb = _VERB.search(sentence)
    if verb is None:
        return ""
    before, after = sentence[: verb.start()].strip(" ,"), content(sentence[verb.end() :])
    return before if after and not content(before) & asked and len(after & asked) >= RESTATED * len(after) else ""


def _quoted(gold: str, question: str) -> str:
    """The only text in quotation marks that the question lacks, if it asks for a title."""
    titles = [title for title in _QUOTED.findall(gold) if not has_words(words(question), words(title))]
    return titles[0].strip(" ,.") if len(titles) == 1 and _TITLE.search(question) else ""


def _between(gold: str, asked: set[str]) -> str:
    """What remains of a sentence without the question's words at both ends."""
    known = asked | STOP
    parts = gold.strip(" .").split()
    inside = [i for i, part in enumerate(parts) if not set(words(part).split()) <= known]
    if not inside or len(content(gold) & asked) < 2:
        return ""
    part = " ".join(parts[inside[0] : inside[-1] + 1]).strip(" ,.")
    return part if len(items(part)) < 2 else ""  # a list may begin or end with words of the question
