"""Places: the answer "Houston, Texas" to a question for one place is a place in a region, not a list of two."""

from __future__ import annotations

import re

from lm_eval_rag.harness.scoring.judge.reading import words
from lm_eval_rag.harness.scoring.normalise import has_words

_ASKS = re.compile(
    r"\bwhere(?:'s| is| was| did| does| do| has| will| can)\b"
    r"|\b(?:which|what)(?:'s| is| was)? (?:the )?(?:[\w'’-]+ ){0,2}?(?:city|town|hometown|birthplace|place|location|"
    r"headquarters)(?=\W*$| (?:is|was|did|does|do|has|will|of|in|on|where|that|with|and)\b)"
)
_SEVERAL = re.compile(r"\b(?:cities|towns|hometowns|birthplaces|places|locations|countries|states|both|each|are)\b")
_PART = re.compile(r"[^\W\d_][^\d,;:]*")
# the region after a place: ", Texas", "(Texas)", "in Texas", ", a city in Texas"
_REGION = re.compile(
    r"^\s*(?:,|\(|,?\s*in\b|,?\s*(?:an? |the )?(?:\w+ )?(?:city|town|village|suburb) (?:in|of)\b)\s*(?:the )?"
    r"(?:(?:[A-Z]\w+ )?(?:state|province|county|city) of )?([A-Z][\w.'’-]*(?:\s[A-Z][\w.'’-]*)*)"
)


def place_and_regions(gold: str, question: str) -> tuple[str, tuple[str, ...]] | None:
    """("houston", ("texas",)) for an answer of two or three names to a question, in lower case, for one place."""
    parts = [part.strip() for part in gold.strip(" .").split(",")]
    if not 2 <= len(parts) <= 3 or not all(_PART.fullmatch(part) and len(part.split()) <= 3 for part in parts):
        return None
    if re.search(r"\b(?:and|or)\b|&", gold.lower()) or not _ASKS.search(question) or _SEVERAL.search(question):
        return None
    return parts[0], tuple(map(words, parts[1:]))


def in_another_region(prediction: str, place: str, regions: tuple[str, ...]) -> bool:
    """Whether a prediction puts the place in another region: "Houston, Mississippi"."""
    text = prediction if prediction != prediction.lower() else prediction.title()
    match = re.search(rf"\b{re.escape(place)}\b", text, re.IGNORECASE)
    names: list[str] = []
    rest = text[match.end() :] if match else ""
    while region := _REGION.match(rest):
        names.append(words(region[1]))
        rest = rest[region.end() :]
    return bool(names) and not any(_same_region(name, region) for name in names for region in regions)


def _same_region(one: str, other: str) -> bool:
    """The same words, one within the other, or an abbreviation: "tx" and "texas", "usa" and "united states"."""
    if has_words(one, other) or has_words(other, one):
        return True
    short, long = sorted((one, other), key=len)
    if not 2 <= len(short) <= 3 or " " in short:
        return False
    if " " in long:
        return "".join(word[0] for word in long.split()).startswith(short[:2])
    return len(short) == 2 and short[0] == long[0] and short[1] in long[1:]
