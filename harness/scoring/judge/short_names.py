"""Short forms of a name that are enough: a family name, "Princeton", "the Warriors", "Apple" for "Apple Inc.".

They count only if the prediction says nothing else but words of the question, and the question asks for such a name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from lm_eval_rag.harness.scoring.judge.mentions import only_mentioned
from lm_eval_rag.harness.scoring.judge.reading import DENIALS, STOP, Pair, from_question, words

_ROLES = (
    "actor|actress|director|filmmaker|singer|vocalist|rapper|musician|composer|songwriter|author|writer|novelist|poet|"
    "painter|artist|player|coach|manager|captain|quarterback|striker|goalkeeper|golfer|driver|boxer|champion|"
    "mvp|goalkeeper|pitcher|member|bandmate|president|minister|governor|senator|mayor|ceo|chair\w*|founder|inventor|king|queen|emperor|wife|husband|spouse|"
    "partner|girlfriend|boyfriend|son|daughter|father|mother|brother|sister|host|person|man|woman"
)
_DEEDS = (
    "directed|wrote|composed|painted|founded|invented|discovered|designed|created|produced|sang|sings|starred|stars|"
    "portrayed|portrays|voiced|voices|married|hosts|hosted|coaches|coached|scored|plays? the|played the|is married|"
    "is dating|did \w+ \w+ marry"
)
_PRIZES = "singles|marathon|election|grand prix|oscar|golden globe|nobel|pulitzer|ballon d'or|masters"
_PERSON = re.compile(
    rf"\b(?:who|which|what)(?:'s)?(?: [\w'’-]+){{0,4}} (?:{_ROLES})s?\b(?!['’])|\bwho (?:{_DEEDS})\b"
    rf"|\bwho(?:'s)? (?:[\w'’-]+ ){{1,8}}?(?:{_PRIZES})\b"
)
_OTHER = re.compile(
    r"\b(?:which|what|whose|name of the)(?: \w+)? (?:team|club|country|city|state|film|movie|song|album|band|group|"
    r"company|university|college|school|sport|year|book|novel|character|award|role)s?\b|\bopponents?\b|\bopposing\b"
)
_TEAM = re.compile(r"\b(?:teams?|franchise|nba|wnba|nfl|mlb|nhl|super bowl|world series|stanley cup)\b")
_SCHOOL = re.compile(
    r"\b(?:university|college|school|attend\w*|study|studied|graduate\w*|degree|alma mater|ph\.?d|m\.?s)\b"
)
_RELATIVE = re.compile(r",\s*(?:who|which|whose)\b[^,;.]*", re.IGNORECASE)
_WHEN = re.compile(r"\s(?:since|in|from|until|on|at|during) (?:[a-z]+ ){0,2}\d[\w, ]*", re.IGNORECASE)
_PASSIVE = re.compile(r"(.*\b(?:is|was|are|were|been)) \w+ by (.*)")
LONGEST = 6  # maximum number of words of the answer
_US_TEAM = re.compile(r"\b(?:nba|wnba|nfl|mlb|nhl|super bowl|world series|stanley cup)\b")
_SHARED = frozenset({"sox", "united", "city", "fc"})  # last words of several teams
_PARTICLES = frozenset(re.findall(r"\w+", "van von de der den di da del la le bin al ter"))
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*)*")
_POSSESSIVE = re.compile(r"(?<=['’]s)|['’]s?\b")
CLIPPED = 3  # minimum number of letters of a team's name that is cut short
_GENERATIONS = frozenset({"jr", "sr", "ii", "iii", "iv"})
_JOINING = frozenset({"of", "in", "on", "at", "to", "for", "from", "by", "with", "as", "and", "s"})
_COMPANY = frozenset({"inc", "incorporated", "corp", "corporation", "ltd", "llc", "plc"})


def short_name(pair: Pair) -> bool | None:
    """The prediction is a short form of the answer's name, beside words of the question."""
    gold = pair.gold_words.split()
    denies = DENIALS.search(pair.prediction.lower()) or {"or", "no"} & set(pair.prediction_words.split())
    if not 2 <= len(gold) <= LONGEST or denies:
        return None
    if _attended(pair, gold):
        return True
    return (
        True
        if any(_stands_for(said, gold, pair) for said in (_said(pair), _only_name(pair), _doer(pair), _concluded(pair)))
        else None
    )


def _stands_for(said: Sequence[str], gold: Sequence[str], pair: Pair) -> bool:
    """Whether words are a short form of the answer's name."""
    if not said or any(map(str.isdigit, said)):
        return False
    if _with_initials(said, gold) or _clipped_team(said, gold, pair.lower_question):
        return True
    starts = [i for i in range(len(gold) - len(said) + 1) if gold[i : i + len(said)] == said]
    if not starts or len(said) == len(gold):
        return False
    before, after = gold[: starts[0]], gold[starts[0] + len(said) :]
    return any(form(pair.lower_question, before, said, after) for form in _FORMS)


def _only_name(pair: Pair) -> list[str]:
    """The words of the only name in a prediction that the question does not have: "He won all three with the Heat"."""
    asked = set(pair.question_words.split()) | STOP
    text = _RELATIVE.sub("", pair.prediction)
    names = [match for match in _NAME.finditer(text) if not set(words(match[0]).split()) <= asked]
    if len(names) != 1 or _POSSESSIVE.match(text, names[0].end()) or only_mentioned(names[0][0], text, pair.question):
        return []
    return [word for word in words(names[0][0]).split() if word not in asked]


def _concluded(pair: Pair) -> list[str]:
    """What follows "so": "It was Redfern, so Quill"."""
    _, so, conclusion = pair.prediction_words.rpartition(" so ")
    return conclusion.split() if so else []


def _doer(pair: Pair) -> list[str]:
    """The first words, if the question's verb follows and does not come again: "Van Gogh painted it in 1889, when"."""
    spoken, asked = pair.prediction_words.split(), set(pair.question_words.split()) - STOP
    led = next((n for n in (1, 2, 3) if set(spoken[n : n + 1]) & asked), 0)
    return spoken[:led] if led and spoken.count(spoken[led]) == 1 else []


def _said(pair: Pair) -> list[str]:
    """The words of a prediction without words of the question and stop words at both ends.

    "Written by", "who ..." and "since 2017" are left out too.
    """
    asked = STOP | {"winner", "answer", "name"} | set(pair.question_words.split())
    text = words(_WHEN.sub("", _RELATIVE.sub("", re.sub(r"\([^)]*\)", " ", pair.prediction))))
    spoken = text.split()
    if match := _PASSIVE.match(text):
        spoken = [*match[1].split(), *match[2].split()]
    inside = [i for i, word in enumerate(spoken) if not from_question(word, asked)]
    return spoken[inside[0] : inside[-1] + 1] if inside else []


def _with_initials(said: Sequence[str], gold: Sequence[str]) -> bool:
    """The same words, the first ones as initials: "W. Shakespeare"."""
    pairs = list(zip(said, gold, strict=False))
    initials = [len(word) == 1 and full.startswith(word) for word, full in pairs]
    same = all(word == full or initial for (word, full), initial in zip(pairs, initials, strict=True))
    return (
        len(said) == len(gold) and same and any(initials) and not initials[-1] and all(full.isalpha() for full in gold)
    )


def _family_name(question: str, before: Sequence[str], said: Sequence[str], after: Sequence[str]) -> bool:
    """The family name, where a person is asked for and the question has no other bearer of it: "DiCaprio".

    A name with an initial tells two people apart ("George W. Bush"), so its family name alone is not enough.
    """
    name = [word for word in (*before, *said) if word not in _PARTICLES]
    person = _PERSON.search(question) and not _OTHER.search(question)
    known = all(word.isalpha() and len(word) > 1 for word in name) and said[-1] not in _GENERATIONS
    return bool(person) and known and not after and len(name) <= 3 and said[-1] not in words(question).split()


def _school(question: str, before: Sequence[str], _said: Sequence[str], after: Sequence[str]) -> bool:
    """A school without its kind, where a school is asked for: "Princeton" for "princeton university"."""
    return not before and after in (["university"], ["college"]) and bool(_SCHOOL.search(question))


def _attended(pair: Pair, gold: Sequence[str]) -> bool:
    """The name of a school after "from" or "attended", if no other is named: "He graduated from Princeton in 1986"."""
    name, kind = " ".join(gold[:-1]), gold[-1]
    words_after = r"in|from|and|where|with|before|until|for|but"
    attends = rf"\b(?:attend\w*|at|to|from|of|entered|joined) {re.escape(name)}(?: (?:{words_after})\b|$)"
    schools = re.findall(r"\b(?:universit(?:y|ies)|colleges?|institute|school|academy)\b", pair.prediction_words)
    asks = kind in ("university", "college") and _SCHOOL.search(pair.lower_question)
    return bool(asks and not schools and re.search(attends, pair.prediction_words))


def _city(question: str, before: Sequence[str], said: Sequence[str], after: Sequence[str]) -> bool:
    """A city of two words without "city": "New York"; but "Kansas" is not Kansas City."""
    asks = re.search(r"\b(?:city|where|town|hometown)\b", question)
    return not before and after == ["city"] and len(said) > 1 and bool(asks)


def _team(question: str, _before: Sequence[str], said: Sequence[str], after: Sequence[str]) -> bool:
    """The last word of a team, where one is asked for, if it is a plural: "Warriors"; many clubs are "United"."""
    team = not after and len(said) == 1 and len(said[0]) > 3 and said[0].endswith("s") and not said[0].endswith("ss")
    return team and bool(_TEAM.search(question)) and said[0] not in words(question).split()


def _clipped_team(said: Sequence[str], gold: Sequence[str], question: str) -> bool:
    """A team's last word cut short, where a team is asked for: "Cavs"; in a league of the US, the whole word."""
    if len(said) != 1 or not _TEAM.search(question) or said[0] in words(question).split():
        return False
    cut = said[0][:-1] if said[0].endswith("s") else ""
    clipped = len(cut) >= CLIPPED and gold[-1].startswith(cut) and len(gold[-1]) > len(said[0])
    return clipped or (said[0] == gold[-1] and said[0] not in _SHARED and bool(_US_TEAM.search(question)))


def _company(_question: str, before: Sequence[str], _said: Sequence[str], after: Sequence[str]) -> bool:
    """A company without its legal form: "Apple" for "apple inc"."""
    return not before and set(after) <= _COMPANY


def _rest_is_asked(question: str, before: Sequence[str], said: Sequence[str], after: Sequence[str]) -> bool:
    """The question has the rest: "Goblet of Fire" where a Harry Potter film is asked for."""
    asked = set(words(question).split())
    kind = after == ["city"] and len(said) == 1  # Kansas
    return not kind and all(_is_asked(word, asked) for word in (*before, *after))


def _is_asked(word: str, asked: Set[str]) -> bool:
    """Whether a question has a word, or one that begins as it does: "mount" and "mountain", "swedish" and "sweden"."""
    return word in _JOINING or word in asked or (len(word) > 3 and any(other[:4] == word[:4] for other in asked))


_FORMS = (_family_name, _school, _city, _team, _company, _rest_is_asked)
