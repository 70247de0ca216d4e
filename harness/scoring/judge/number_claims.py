"""Which numbers of a prediction are claimed as the answer: of "1993 - 1975 = 18" only the last.

Numbers are left out step by step, as long as one remains: those within a name ("Ligue 1"), those before the last "=",
those of another kind of unit than the answer's, those that are only compared with ("up from $40"), and, if one has
the noun that is asked for ("57 goals"), those without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lm_eval_rag.harness.scoring.judge.reading import HOW_MANY, STOP, Pair
from lm_eval_rag.harness.scoring.judge.values import Quantity

_LEADS = frozenset(
    re.findall(r"\w+", "only about around over exactly roughly nearly almost total some just approximately")
)
_NOUN = re.compile(r"\bhow many (?:\w+ed |different |more |full-length )?(\w+)")
_BESIDE = re.compile(
    r"\b(?:(?:down |up )?from|than|versus|vs\.?|compared (?:to|with)|after|of the|out of)\s*(?:the )?$",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"^\s*(?:more|fewer|less)\b", re.IGNORECASE)
Keep = Callable[[Quantity, Quantity, Pair], bool]


def claimed_numbers(numbers: Sequence[Quantity], expected: Quantity, pair: Pair) -> list[Quantity]:
    """The numbers that a prediction claims; () only if all of them are part of a name."""
    kept = [number for number in numbers if not _in_name(number, pair)]
    for keep in _STEPS:
        kept = [number for number in kept if keep(number, expected, pair)] or kept
    return kept


def _in_name(number: Quantity, pair: Pair) -> bool:
    """After a capitalised word that does not begin the sentence, without a noun of the question after it."""
    text = pair.prediction
    start = number.span[0]
    before = re.search(r"(?:^|[.!?]\s+)?(\b[A-ZÀ-Þ][\w'’-]*)\s$", text[:start])
    if number.unit or number.scale != 1 or before is None or not text[start].isdigit():
        return False
    word, opens = before[1].lower(), re.search(r"(?:^|[.!?:]\s*)$", text[: before.start(1)])
    after = re.match(r"\s+(\w+)", text[number.span[1] :])
    noun = after is not None and after[1].lower() not in STOP and after[1].lower() in pair.lower_question
    return not (opens or noun or word in _LEADS or word in STOP or _shown(pair.gold, before[1], text[start]))


def _shown(gold: str, name: str, digit: str) -> bool:
    """Whether the answer itself has the name with its number."""
    return f"{name} {digit}" in gold


def _result(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    return number.span[0] > pair.prediction.rfind("=")


def _same_kind(number: Quantity, expected: Quantity, pair: Pair) -> bool:
    if expected.unit:
        return not number.unit or number.unit == expected.unit
    return not (number.unit in ("$", "€", "£", "¥", "%") and HOW_MANY.search(pair.lower_question))


def _not_compared(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    start, end = number.span
    return not (_BESIDE.search(pair.prediction[:start]) or _COMPARED.match(pair.prediction[end:]))


def _with_noun(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    noun = _NOUN.search(pair.lower_question)
    after = pair.prediction[number.span[1] :].lower().split()[:3]
    same_unit = bool(noun) and pair.prediction[: number.span[1]].lower().endswith(noun[1]) if noun else False
    return noun is not None and (
        same_unit or any(word.strip(".,;:").rstrip("s") == noun[1].rstrip("s") for word in after)
    )


_STEPS: tuple[Keep, ...] = (_result, _with_noun, _same_kind, _not_compared)
