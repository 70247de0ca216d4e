"""The answer within a gold answer that is a sentence: "The actress who played her is Ada Quill" -> "Ada Quill".

Three forms are read, and only if the sentence repeats words of the question: the part after its only copula, the part
after its last "by", and the part that remains when words of the question are removed at both ends.
"""

from __future__ import annotations

import re

from lm_eval_rag.harness.scoring.judge.reading import STOP, content, words

LONGEST = 6  # maximum number of words of a reduced answer
_COPULA = re.compile(r"\b(?:is|was|are|were)\b", re.IGNORECASE)
_BY = re.compile(r"^.*\b(?:is|was|are|were|been)\b.*\bby\s+", re.IGNORECASE | re.DOTALL)


def reduced(gold: str, question: str) -> str:
    """The answer within a gold answer, or "" if it is no sentence or has no such part."""
    asked = content(question)
    if len(gold.split()) < 4 or len(content(gold) & asked) < 1:
        return ""
    for part in (_after_by(gold), _after_copula(gold, asked), _between(gold, asked)):
        if part and len(part.split()) <= LONGEST and content(part) and not content(part) <= asked:
            return part
    return ""


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


def _between(gold: str, asked: set[str]) -> str:
    """What remains of a sentence without the question's words at both ends."""
    known = asked | STOP
    parts = gold.strip(" .").split()
    inside = [i for i, part in enumerate(parts) if not set(words(part).split()) <= known]
    if not inside or len(content(gold) & asked) < 2:
        return ""
    return " ".join(parts[inside[0] : inside[-1] + 1]).strip(" ,.")
