"""Refusals in other words than "I don't know": "The documents do not mention it".

CRAG's paper (arXiv:2406.04744, section 4.1) counts "I'm sorry I can't find ..." and a request to clarify the question
as missing, not as a hallucination. A text is a refusal if every clause of it refuses, apologises, or says what the
sources contain instead. "The page does not say so, but it was Ada Quill" is an answer.
"""

from __future__ import annotations

import re

_SOURCE = (
    r"(?:context|document|passage|text|information|reference|article|source|search result|result|page|snippet|"
    r"material|data|content|knowledge graph|extract|excerpt|chunk|transcript)s?"
)
_KNOW = (
    r"(?:know|find|answer|compute|calculate|guess|(?:work|figure|make) \w+ out|add \w+ up|help|determine|"
    r"tell|say|provide|locate|identify|confirm|verify|give|see|assist|"
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
    r"covered|discussed|addressed|reported|known|named)"
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
    r"|\b(?:found|find|see|have|has|had|contain|there is|there's|say) nothing (?:about|on|that|of|regarding|in)\b"
    rf"|\bnothing (?:that )?(?:i|we) (?:\w+ )?(?:retrieved|found|read|saw|have|was given)\b|\bnothing in (?:it|them|the"
    rf" (?:\w+ )?{_SOURCE}) (?:\w+ )?{_SAY}|\b(?:i|we)(?: do not| don't) have (?:the|any|a|enough|access)\b"
    rf"|\bno (?:\w+ ){{1,3}}(?:is|are|was|were) {_TOLD}\b[^.;]*\b{_SOURCE}\b|\bnot something (?:i|we) can {_KNOW}\b"
    r"|\b(?:i|we) (?:was|were)(?: not|n't) given\b|^\W*(?:i'?d|i would) rather not (?:say|guess)\b"
    rf"|^\W*not (?:\w+ly )?{_TOLD}\b|^\W*(?:unable|impossible|not possible) to {_KNOW}\b"
    r"|\b(?:information|answer|question|it|this|that) (?:is|was)(?: currently)? "
    r"(?:unavailable|undetermined|undisclosed|unspecified|unknown|unclear|ambiguous)\W*$"
    r"|\b(?:it is|it's|it was) (?:not possible|impossible|unclear|not clear|not known|unknown)\b(?! that)"
    r"|\bcan(?: ?not|'?t) be (?:determined|answered|calculated|computed|worked out|derived|inferred|"
    r"said|told|found|identified|established|verified|confirmed)\b"
    r"|\b(?:could|can|would) you (?:please )?(?:clarify|specify|provide|give|rephrase|tell me)\b"
    r"|\bplease (?:clarify|specify|rephrase|provide)\b|\bneed more (?:\w+ )?(?:information|context|details?)\b"
    r"|^\W*(?:the answer is )?(?:unknown|not known|unclear|undetermined|unspecified|(?:i have )?no (?:idea|clue)|"
    r"not sure|n/?a|none found|no answer(?: found| given)?|not available|unanswerable)\W*$"
)
_FILLERS = re.compile(
    r"^\W*(?:(?:i'?m |i am |we are )?(?:so |very )?sorry|(?:my )?apologies|i apologi[sz]e|unfortunately)\b[^.;]{0,20}$"
    r"|\b(?:please|could you|can you|would you)\b"
    rf"|^\W*(?:it|they|(?:the |these |this )(?:\w+ )?{_SOURCE}) (?:only |just |merely )?(?:describe|discuss|mention|"
    r"cover|contain|provide|talk|focus|refer|deal)s?\b"
    rf"|^\W*(?:it|they|(?:the |these |this )(?:\w+ )?{_SOURCE}) (?:is|are) (?:\w+ )?(?:about|on)\b"
)
# a last clause that refuses, whatever precedes it: "Ada Quill is the director, but I found nothing about her husband"
_AFTER_ALL = re.compile(r"(?:,\s*|[.!?;]\s+)(?:but|however|although|though|yet)\b,?\s*(.*)$", re.DOTALL)
_GUESSED = re.compile(
    r"^\W*(?:it|that|this|he|she|they|there)(?:'s| is| was| were| are|'re| may| might| could)\b"
    r"|\b(?:probably|likely|possibly|perhaps|maybe|i think|i believe|i guess|may|might|seems?|appears?|must)\b"
)
_NO_CHECK = re.compile(
    r"\b(?:confirm|verify|check|sure|certain|prove|why|exact\w*|more|further|details?)\b|\b(?:this|that|it|so)\W*$"
)
_CLAUSES = re.compile(
    r"(?<=[.!?;])\s+|,?\s+\b(?:but|however|although|though)\b,?\s*(?!(?:i|we)\b)|,\s+(?:so|yet|still)\b|\n+"
)
_OPENING = re.compile(
    r"^\W*(?:(?:but|however|although|though|yet|still|so)\b,?\s*)?"
    r"(?:(?:(?:i'?m |i am |we are )?(?:so |very )?sorry|(?:my )?apologies|unfortunately)[,:–—-]*\s+)?"
    r"(?:(?:based on|according to|from|given) (?:the|these|this) [^,]*,\s*)?"
)


_CLOSING = re.compile(r",\s*(?:sorry|i'm afraid|unfortunately)\W*$")


def refused(text: str) -> bool:
    """Whether a text refuses to answer, and does nothing else."""
    clauses = [_OPENING.sub("", clause) for clause in _CLAUSES.split(text.lower().replace("’", "'")[:1000])]
    clauses = [clause for clause in clauses if re.search(r"\w", clause)]
    clauses = [_CLOSING.sub("", clause) for clause in clauses]
    refusing = [bool(_REFUSALS.search(clause)) for clause in clauses]
    return any(refusing) and all(
        refuses or _FILLERS.search(clause) for refuses, clause in zip(refusing, clauses, strict=True)
    )


def refused_after_context(text: str) -> bool:
    """Whether a text says something, guesses no answer, and ends with "but" and a refusal of what was asked."""
    low = text.lower().replace("’", "'")[:1000]
    match = _AFTER_ALL.search(low)
    if match is None or _GUESSED.search(low[: match.start()]) or _NO_CHECK.search(match[1]):
        return False
    return refused(match[1])
