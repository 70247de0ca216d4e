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
    r"(?:know|find|answer|determine|tell|say|provide|locate|identify|confirm|verify|give|see|help|assist|"
    r"have (?:any |enough |the |an |that |this |such )?(?:information|info|access|data|details|knowledge|answer))"
)
_CANNOT = (
    r"(?:can ?not|can'?t|could(?: not|n'?t)|do(?: not|n'?t)|did(?: not|n'?t)|(?:am|was|are|were) (?:un|not )able to|"
    r"(?:was|were)n'?t able to)"
)
_SAY = (
    r"(?:(?:mention|say|state|contain|provide|include|give|indicate|tell|reveal|list|describe|name|answer|have|show|"
    r"disclose|cover|address|discuss)s?|specif(?:y|ies))\b"
)
_TOLD = (
    r"(?:mentioned|stated|specified|provided|given|included|listed|found|available|contained|disclosed|described|"
    r"covered|discussed|addressed|reported|known)"
)
_DETAIL = r"(?:information|info|evidence|data|details?|context|mention|knowledge|references?|answer)"
_REFUSALS = re.compile(
    rf"\b(?:i|we)(?: \w+ly)? {_CANNOT}(?: \w+ly)? {_KNOW}\b"
    rf"|\b(?:i|we) have (?:no|insufficient) (?:\w+ )?{_DETAIL}\b"
    r"|\b(?:i|we)(?:'m| am|'re| are) (?:not (?:sure|certain|aware)|unsure|unable to|not able to)\b"
    rf"|\b(?:i|we|{_SOURCE}) lacks? (?:that|this|the|any|such|sufficient|enough) (?:\w+ )?{_DETAIL}\b"
    rf"|^\W*(?:can ?not|can'?t|do not|don'?t|could not|couldn'?t) {_KNOW}\b|\b{_SOURCE} (?:is|are) silent\b"
    rf"|(?:\bnot|n't|\bno) (?:enough|sufficient|adequate) (?:\w+ )?{_DETAIL}\b|\binsufficient (?:\w+ )?{_DETAIL}\b"
    r"|\bno(?: relevant| specific| such| further)? (?:information|info|evidence|data|mention|details?)\b"
    rf"|\bno (?:clear |definite )?answer (?:is |was |can be )?(?:{_TOLD}|in|to)\b"
    rf"|\b{_SOURCE}\b[^.;]*\b(?:do|does|did)(?: not|n'?t) (?:\w+ly )?{_SAY}"
    rf"|\b(?:none|neither) of the (?:\w+ )?{_SOURCE}\b[^.;]*\b{_SAY}|\bno (?:\w+ )?{_SOURCE} {_SAY}"
    rf"|\b(?:is|are|was|were)(?: not|n'?t) (?:\w+ly )?{_TOLD}\b(?:\W*$|[^.;]*\b{_SOURCE}\b)"
    r"|\b(?:is|are|was|were)(?: not|n'?t) (?:present |contained )?(?:in|part of) (?:any of )?the (?:\w+ )?"
    rf"{_SOURCE}\b"
    rf"|^\W*not (?:\w+ly )?{_TOLD}\b|^\W*(?:unable|impossible|not possible) to {_KNOW}\b"
    r"|\b(?:information|answer|question|it|this|that) (?:is|was)(?: currently)? "
    r"(?:unavailable|undetermined|undisclosed|unspecified|unknown|unclear|ambiguous)\W*$"
    r"|\b(?:it is|it's|it was) (?:not possible|impossible|unclear|not clear|not known|unknown)\b(?! that)"
    r"|\bcan(?: ?not|'?t) be (?:determined|answered|said|told|found|identified|established|verified|confirmed)\b"
    r"|\b(?:could|can|would) you (?:please )?(?:clarify|specify|provide|give|rephrase|tell me)\b"
    r"|\bplease (?:clarify|specify|rephrase|provide)\b|\bneed more (?:\w+ )?(?:information|context|details?)\b"
    r"|^\W*(?:the answer is )?(?:unknown|not known|unclear|undetermined|unspecified|(?:i have )?no (?:idea|clue)|"
    r"not sure|n/?a|none found|no answer(?: found| given)?|not available|unanswerable)\W*$"
)
_FILLERS = re.compile(
    r"^\W*(?:(?:i'?m |i am |we are )?(?:so |very )?sorry|my apologies|i apologi[sz]e|unfortunately)\b[^.;]{0,20}$"
    r"|\b(?:please|could you|can you|would you)\b"
    rf"|^\W*(?:it|they|(?:the |these |this )(?:\w+ )?{_SOURCE}) (?:only |just |merely )?(?:describe|discuss|mention|"
    r"cover|contain|provide|talk|focus|refer)s?\b"
)
_CLAUSES = re.compile(
    r"(?<=[.!?;])\s+|,?\s+\b(?:but|however|although|though)\b,?\s*(?!(?:i|we)\b)|,\s+(?:so|yet|still)\b|\n+"
)
_OPENING = re.compile(
    r"^\W*(?:(?:but|however|although|though|yet|still|so)\b,?\s*)?"
    r"(?:(?:(?:i'?m |i am |we are )?(?:so |very )?sorry|my apologies|unfortunately)[,:–—-]*\s+)?"
    r"(?:(?:based on|according to|from|given) (?:the|these|this) [^,]*,\s*)?"
)


def refused(text: str) -> bool:
    """Whether a text refuses to answer, and does nothing else."""
    clauses = [_OPENING.sub("", clause) for clause in _CLAUSES.split(text.lower().replace("’", "'")[:1000])]
    clauses = [clause for clause in clauses if re.search(r"\w", clause)]
    refusing = [bool(_REFUSALS.search(clause)) for clause in clauses]
    return any(refusing) and all(
        refuses or _FILLERS.search(clause) for refuses, clause in zip(refusing, clauses, strict=True)
    )
