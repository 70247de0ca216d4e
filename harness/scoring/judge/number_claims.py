"""Which numbers of a prediction are claimed as the answer: of "1993 - 1975 = 18" only the last.

Numbers are left out step by step, as long as one remains: those within a name ("Ligue 1"), those before the last "=" or
before a sum ("20 and 22, which makes 42"), those in parentheses ("17 (4 + 2 + 11)"), the parts of a percentage
("13 of 50, or 26 %"), those after a colon, those of another kind of unit than the answer's, those that are negated or
only compared with ("up from $40"), and, if one has the noun that is asked for ("57 goals"), those without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lm_eval_rag.harness.scoring.judge.reading import HOW_MANY, STOP, Pair
from lm_eval_rag.harness.scoring.judge.values import Quantity

_LEADS = frozenset(
    re.findall(r"\w+", "only about around over exactly roughly nearly almost total some just approximately")
)
NOUN = re.compile(r"\bhow many (?:\w+ed |different |more |full-length )?(\w+)")
_BESIDE = re.compile(
    r"\b(?:(?:down |up )?from|than|versus|vs\.?|compared (?:to|with)|after|of (?:the|its|their|his|her|all)|out of|"
    r"of (?:which|whom|these|them)|including)\s*(?:the )?$",
    re.IGNORECASE,
)
_COMPARED = re.compile(r"^\s*(?:more|fewer|less)\b", re.IGNORECASE)
_THAN = re.compile(r"(?:less|fewer|greater) than\b", re.IGNORECASE)
_NOT = re.compile(r"\bnot\s*$", re.IGNORECASE)
_ASKS_TOTAL = re.compile(r"\b(?:total|in all|altogether|combined|together|sum|overall|both|all)\b")
_FILL = r"[,:]?\s+(?:(?:is|of|that|it|they|he|she|have|has|had|are|was|were|won|about|the|there|to|up)\s+){0,3}$"
_SUMMED = re.compile(
    rf"\b(?:makes?|making|adds? up|adding up|equals|amounts|comes|i\.e\.|so|thus|hence|therefore){_FILL}", re.I
)
_TOTAL_BEFORE = re.compile(
    rf"\b(?:total|totals|totall?ing|combined|altogether|in all|together|overall|sum){_FILL}", re.I
)
_TOTAL_AFTER = re.compile(r"^\s*(?:\w+\s+){0,3}(?:in total|in all|altogether|combined|together|overall)\b", re.I)
_BRACKETS = re.compile(r"\((?!\s*(?:or|now|but|actually|maybe|perhaps|possibly|later)\b)[^)]*(?:\)|$)")
_PARTS_AFTER = re.compile(r"^\s*(?:\w+\s+)?(?:out )?of (?:the |all |its |their )*\d", re.I)
_PARTS_BEFORE = re.compile(r"\d\s*(?:\w+\s+)?(?:out )?of (?:the |all |its |their )*$", re.I)
_MEASURE = re.compile(
    r"\b(?:price|ratio|yield|market cap\w*|volume|revenue|budget|population|earnings|gross|salary|net worth|height|"
    r"length|width|depth|area|runtime|age|weight)\b"
)
BESIDE = 80  # characters before or after a number that are read
_OTHERS = [("clos(?:ed?|ing)\\b", "open(?:ed|ing)?\\b"), ("high(?:est)?\\b", "low(?:est)?\\b")]
_OTHERS += [(other, asked) for asked, other in _OTHERS]
Keep = Callable[[Quantity, Quantity, Pair], bool]


def claimed_numbers(numbers: Sequence[Quantity], expected: Quantity, pair: Pair) -> list[Quantity]:
    """The numbers that a prediction claims; none only if all are part of a name or a ratio, or of the other price."""
    kept = [number for number in numbers if not _in_name(number, pair) and not _of_another(number, pair)]
    kept = [number for number in kept if _no_part(number, expected, pair)]
    for keep in _STEPS:
        kept = [number for number in kept if keep(number, expected, pair)] or kept
    return kept


def _in_name(number: Quantity, pair: Pair) -> bool:
    """After a capitalised word that does not begin the sentence, without a noun of the question after it."""
    text = pair.prediction
    start = number.span[0]
    left = _left(number, pair)
    before = re.search(r"(?:^|[.!?]\s+)?(\b[A-ZÀ-Þ][\w'’-]*)\s$", left)
    if number.unit or number.scale != 1 or before is None or not text[start].isdigit():
        return False
    word, opens = before[1].lower(), re.search(r"(?:^|[.!?:]\s*)$", left[: before.start(1)])
    after = re.match(r"\s+(\w+)", _right(number, pair))
    noun = after is not None and after[1].lower() not in STOP and after[1].lower() in f"{pair.lower_question} times"
    return not (opens or noun or word in _LEADS or word in STOP or _shown(pair.gold, before[1], text[start]))


def _of_another(number: Quantity, pair: Pair) -> bool:
    """Said of the opening price where the closing price is asked for, and the like."""
    left = re.split(r"[.,;]\s|\band\b", _left(number, pair).lower())[-1]
    for asked, other in _OTHERS:
        said = re.findall(rf"\b(?:({asked})|{other})", left)
        if re.search(rf"\b{asked}", pair.lower_question) and not re.search(rf"\b{other}", pair.lower_question):
            return bool(said) and not said[-1]
    return False


def _left(number: Quantity, pair: Pair) -> str:
    """What stands right before a number."""
    start = number.span[0]
    return pair.prediction[max(0, start - BESIDE) : start]


def _right(number: Quantity, pair: Pair) -> str:
    """What stands right after a number."""
    end = number.span[1]
    return pair.prediction[end : end + BESIDE]


def _shown(gold: str, name: str, digit: str) -> bool:
    """Whether the answer itself has the name with its number."""
    return f"{name} {digit}".lower() in gold.lower()


def _result(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    return number.span[0] > pair.prediction.rfind("=")


def _summed(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    """After "which makes"; if the question asks for a total, after a word for it too."""
    before = _left(number, pair)
    return bool(_SUMMED.search(before) or (_ASKS_TOTAL.search(pair.lower_question) and _TOTAL_BEFORE.search(before)))


def _before_total(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    """Before a word for a total, if the question asks for one."""
    after = _right(number, pair)
    return bool(_ASKS_TOTAL.search(pair.lower_question) and _TOTAL_AFTER.search(after))


def _outside_brackets(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    start = number.span[0]
    return not any(match.start() <= start < match.end() for match in _BRACKETS.finditer(pair.prediction))


def _no_part(number: Quantity, expected: Quantity, pair: Pair) -> bool:
    """Not one of the two numbers of "13 of 50" beside a percentage."""
    part = _PARTS_AFTER.search(_right(number, pair)) or _PARTS_BEFORE.search(_left(number, pair))
    return not (expected.unit == "%" and not number.unit and part)


def _before_colon(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    colon = re.search(r":\s", pair.prediction)
    return colon is None or number.span[0] < colon.start()


def _after_measure(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    """Right after the measure that the question asks for: "a budget of $200 million"."""
    before = _left(number, pair).lower()
    return any(
        re.search(rf"\b{measure}\b(?: (?:of|is|was|at|stood|reached|worth))*\s*$", before)
        for measure in _MEASURE.findall(pair.lower_question)
    )


def _same_kind(number: Quantity, expected: Quantity, pair: Pair) -> bool:
    if expected.unit:
        return not number.unit or number.unit == expected.unit
    return not (number.unit in ("$", "€", "£", "¥", "%") and HOW_MANY.search(pair.lower_question))


def _not_compared(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    start, end = number.span
    beside = _BESIDE.search(_left(number, pair)) or _THAN.match(pair.prediction[start:end])
    return not (beside or _COMPARED.match(_right(number, pair)))


def _asserted(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    return not _NOT.search(_left(number, pair))


def _with_noun(number: Quantity, _expected: Quantity, pair: Pair) -> bool:
    noun = NOUN.search(pair.lower_question)
    after = _right(number, pair).lower().split()[:3]
    start, end = number.span
    same_unit = noun is not None and pair.prediction[start:end].lower().endswith(noun[1])
    return noun is not None and (
        same_unit or any(word.strip(".,;:").rstrip("s") == noun[1].rstrip("s") for word in after)
    )


_STEPS: tuple[Keep, ...] = (
    _result,
    _summed,
    _before_total,
    _with_noun,
    _after_measure,
    _outside_brackets,
    _same_kind,
    _before_colon,
    _not_compared,
    _asserted,
)
