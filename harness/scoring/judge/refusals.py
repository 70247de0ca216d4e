"""Refusals in other words than "I don't know": "The documents do not mention it".

CRAG's paper (arXiv:2406.04744, section 4.1) counts "I'm sorry I can't find ..." and a request to clarify the question
as missing, not as a hallucination. A text is a refusal if every clause of it refuses, apologises, or says what the
sources contain instead. "The page does not say so, but it was Ada Quill" is an answer.
"""

from __future__ import annotations

import re

_SOURCE = (
    r"(?:context|document|passage|text|information|reference|article|source|search result|result|page|snippet|"
    r"material|data|content|knowledge graph)s?"
)
_KNOW = (
    r"(?:know|find|answer|determine|tell|say|provide|locate|identify|confirm|verify|give|see|"
    r"have (?:any |enough |the )?(?:information|access|data|details|knowledge))"
)
_CANNOT = (
    r"(?:can ?not|can'?t|could(?: not|n'?t)|do(?: not|n'?t)|did(?: not|n'?t)|(?:am|was|are|were) (?:un|not )able to)"
)
_SAY = (
    r"(?:mention|say|state|contain|provide|specify|include|give|indicate|tell|reveal|list|describe|name|answer|have|"
    r"show|disclose|cover|address|discuss)"
)
_REFUSALS = re.compile(
    rf"\b(?:i|we)(?: \w+ly)? {_CANNOT}(?: \w+ly)? {_KNOW}\b"
    rf"|\b(?:i|we)(?:'m| am|'re| are) (?:not (?:sure|certain|aware)|unsure|unable to|not able to)\b"
    r"|\b(?:not enough|insufficient|no(?: relevant| specific| such)?) (?:information|evidence|data|mention)\b"
    rf"|\b{_SOURCE}\b[^.;]*\b(?:do|does|did)(?: not|n'?t) (?:\w+ly )?{_SAY}\b"
    r"|\b(?:is|are|was|were)(?: not|n'?t) (?:\w+ly )?(?:mentioned|stated|specified|provided|given|included|listed|"
    rf"found|available|contained|disclosed)\b(?:$|[^.;]*\b{_SOURCE}\b)"
    r"|\b(?:it is|it's|it was) (?:not possible|impossible|unclear|not clear|not known|unknown)\b(?! that)"
    r"|\bcan(?: ?not|'?t|not)? be (?:determined|answered|said|told|found)\b"
    r"|^\s*(?:the answer is )?(?:unknown|not known|(?:i have )?no idea|not sure|n/?a|none found|no answer|"
    r"not available|unanswerable)\W*$"
)
_FILLERS = re.compile(
    r"^\W*(?:(?:i'?m |i am |we are )?(?:so |very )?sorry|my apologies|i apologi[sz]e|unfortunately)\b[^.;]{0,20}$"
    r"|\b(?:please|could you|can you|would you)\b"
    rf"|^\W*(?:it|they|(?:the |these |this )(?:\w+ )?{_SOURCE}) (?:only |just |merely )?(?:describe|discuss|mention|"
    r"cover|contain|provide|talk|focus|refer)s?\b"
)
_CLAUSES = re.compile(r"(?<=[.!?;])\s+|,?\s+\b(?:but|however|although|though)\b,?\s*(?!(?:i|we)\b)|\n+")
_OPENING = re.compile(r"^\W*(?:but|however|although|though)\b,?\s*")


def refused(text: str) -> bool:
    """Whether a text refuses to answer, and does nothing else."""
    clauses = [_OPENING.sub("", clause) for clause in _CLAUSES.split(text.lower().replace("’", "'")[:1000])]
    clauses = [clause for clause in clauses if re.search(r"\w", clause)]
    refusing = [bool(_REFUSALS.search(clause)) for clause in clauses]
    return any(refusing) and all(
        refuses or _FILLERS.search(clause) for refuses, clause in zip(refusing, clauses, strict=True)
    )
