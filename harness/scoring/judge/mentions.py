"""Which part of a prediction is claimed as the answer, and which part only mentions a name.

"Redmond, near Seattle" mentions Seattle; "Bill Gates was born in Seattle" claims it. "Pau Gasol's brother, Marc Gasol,
plays basketball" has commas but no list of candidates.
"""

from __future__ import annotations

import re

from lm_eval_rag.harness.scoring.judge.reading import DENIALS, STOP, content, items, words

_LINKS = frozenset(
    re.findall(
        r"\w+",
        "who which whose where while when until because since near before after under over than is was are were has "
        "had plays played won also directed starring wrote sang born named called not however therefore instead "
        "actually namely too then",
    )
)
_KIN = (
    "brother|sister|son|daughter|father|mother|wife|husband|cousin|friend|rival|opponent|colleague|partner|pupil|"
    "teacher|successor|predecessor|neighbou?r|contemporary|follower|imitator|"
    "collaborator|teammate|classmate|mentor|assistant|bandmate|co-star|deputy|boss|understudy|fan|admirer|student|suburb"
)
_APART = re.compile(  # right before a name that is only mentioned
    r"(?:\b(?:near|nearby|unlike|than|besides|alongside|replac(?:ed|es|ing)|succeed(?:ed|s|ing)|follow(?:ed|s|ing)|"
    r"preced(?:ed|es|ing)|beat(?:s|ing)?|defeat(?:ed|s|ing)|edg(?:ed|ing)|lost(?: [\d –-]+)? to|similar to|close to|"
    r"next to|ahead of|(?:took|taking|takes) over from|before|(?<!named )(?<!called )after|"
    r"compared (?:to|with)|who (?:was|were) \w+ed by|(?:moved|went|returned|relocated) to|"
    r"(?:came|released|built|born|was|is) (?:\w+ )?after)|"
    rf",\s*(?:(?:an?|the) )?(?:\w+ )?(?:{_KIN}) (?:of|to))\s+(?:the |an? )?$",
    re.IGNORECASE,
)
_AGAINST = re.compile(r"\b(over|against|opposite)\s+(?:the )?$", re.IGNORECASE)  # unless the question has the word
_CONTRAST = re.compile(r"[,;]?\s+(?:(?:even )?though|although|while|whereas)\s+([^,;]*)$", re.IGNORECASE)
_THEIR_KIN = re.compile(rf"\b(?:(?:his|her|its|their)(?: \w+)?|whose(?: \w+)?) (?:{_KIN}),?(?: was| is)?\s+$", re.I)
_IS_KIN = re.compile(rf"^\W*(?:was|is|were|as|being)? ?(?:his|her|its|their)(?: \w+)? (?:{_KIN})s?\b", re.IGNORECASE)
_ASKS_KIN = re.compile(rf"\b(?:{_KIN}|spouse|marri\w+|marry|child\w*|parents?|siblings?|relat\w+)\b")
_ASKED_KIND = re.compile(r"\b(?:which|what) (\w+)")
_RELATIVE = re.compile(r"(\b(?:who|what|which|where|when|whose|how)\b.*?\w) (?:who|that|which|whose)\b.*")
STEM = 5  # letters of a word that tell its stem
_NEAR = re.compile(r"\b(near|nearby|close to|next to|outside)\b(?:\s+(?:the|of))?\s*$", re.IGNORECASE)
_PARTICIPLE = re.compile(
    r"\b(\w+ed|born|won|written|sung|built|made|held|known|set|led|sold)\s+(?:in|by|at|to|on|for)\s+"
)
_PLACE = re.compile(r"\b(?:where|city|town|country|state|place|located|location|headquarter\w*|born|capital)\b")


def only_mentioned(gold: str, prediction: str, question: str) -> bool:
    """Whether every occurrence of the answer in a prediction only mentions it beside another candidate.

    In a prediction without capitals every word may be a name.
    """
    prediction = prediction if prediction != prediction.lower() else prediction.title()
    places = _occurrences(gold, prediction)
    return bool(places) and all(
        _aside(prediction[:start], gold, question)
        or _related(prediction[:start], prediction[end:], question)
        or _contrasted(prediction[:start], prediction[end:], question)
        for start, end in places
    )


def _occurrences(gold: str, prediction: str) -> list[tuple[int, int]]:
    pattern = r"\W+".join(map(re.escape, re.findall(r"\w+", gold)))
    return [match.span() for match in re.finditer(rf"\b{pattern}\b", prediction, re.IGNORECASE)] if pattern else []


def _aside(before: str, gold: str, question: str) -> bool:
    """Whether the text before a name sets it apart from the candidate that precedes it."""
    sentence = re.split(r"(?<=[.!?;])\s", before)[-1]
    if (near := _NEAR.search(sentence)) and near[1].lower() not in question.lower():
        return True
    against = _AGAINST.search(sentence)
    apart = _APART.search(sentence) or (against and against[1].lower() not in question.lower())
    return bool(apart and _has_candidate(sentence, question)) or _claims_other(sentence, gold, question)


def _related(before: str, after: str, question: str) -> bool:
    """Whether a name is a relative's or colleague's of the candidate before it: "Bob Holt; [Ada] was his friend"."""
    related = _THEIR_KIN.search(before) or _IS_KIN.search(after)
    return bool(related and not _ASKS_KIN.search(question.lower())) and _has_candidate(before, question)


def _contrasted(before: str, after: str, question: str) -> bool:
    """Whether a name is in a clause with "although" or "while" that repeats no more of the question than the main one.

    Their subjects are candidates: "Bob Holt wrote it, while [Ada Quill] sang" does not tell that Ada Quill wrote it.
    """
    sentence = re.split(r"(?<=[.!?;])\s", before)[-1]
    clause = _CONTRAST.search(sentence)
    if clause is None or not _has_candidate(sentence[: clause.start()], question):
        return False
    kind = _ASKED_KIND.search(question.lower())
    asked = _stems(question) - (_stems(kind[1]) if kind else set())
    within = _stems(clause[1] + " " + re.split(r"[,.;]", after)[0])
    return len(asked & within) <= len(asked & _stems(sentence[: clause.start()]))


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in content(text)}


def _has_candidate(text: str, question: str) -> bool:
    """Whether a text has a name that the question does not have; its first word counts as a name if it has no verb."""
    asked = content(question)
    names = re.findall(r"\b[A-ZÀ-Þ][\w'’-]*", text)
    return any(set(words(name).split()) - asked - STOP for name in names)


def _claims_other(before: str, gold: str, question: str) -> bool:
    """Whether the verb of the question has another name as its object: "was born in Boston and moved to [Seattle]"."""
    asked = set(words(_RELATIVE.sub(r"\1", question.lower())).split())
    for match in _PARTICIPLE.finditer(before):
        name = re.match(r"[A-ZÀ-Þ][\w'’-]*", before[match.end() :])
        if name and match[1].lower() in asked and not content(name[0]) <= asked | content(gold):
            return True
    return False


def candidates(gold: str, prediction: str, question: str) -> bool:
    """Whether a prediction lists the answer among other candidates, as in "Ada Quill, Bob Holt, Cy Varn".

    Items with a word of the question are no candidates, nor is what follows the first item with a verb or a relative
    pronoun. The parts of an address ("Seattle, Washington, USA") are none either. A single other name is a candidate
    after "and", but not after a comma.
    """
    asked, wanted = content(question), words(gold)
    parts = items(re.sub(r"['’]s\b", "", prediction))
    holding = next((i for i, part in enumerate(parts) if f" {wanted} " in f" {words(part)} "), None)
    if holding is None or (holding == 0 and _PLACE.search(question.lower()) and " and " not in prediction.lower()):
        return False
    others = 0
    for i, part in enumerate(parts):
        spoken = words(part).split()
        if i == holding or content(part) & asked:
            continue
        if i > holding and (_LINKS & set(spoken) or (spoken and spoken[0] in STOP)):
            break
        bare = not (_LINKS | STOP) & set(spoken) and not DENIALS.search(part)
        others += bare and bool(spoken)
    both = len(parts) == 2 and re.search(r"\band\b|&", prediction.lower()) is not None
    return others > max(0 if both else 1, len(items(gold)) - 1)
