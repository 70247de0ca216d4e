"""Ratios and scores: "4-for-1", "4:1", "four to one" and "4–1" are one answer; their order counts."""

from __future__ import annotations

import re
from itertools import pairwise

from lm_eval_rag.harness.scoring.judge.reading import Pair, denied
from lm_eval_rag.harness.scoring.judge.values import BELOW_100

_NUMBER = rf"(\d{{1,3}}|{'|'.join(BELOW_100)})"
_RATIO = re.compile(
    rf"(?<![\w.,:/-]){_NUMBER}(?:\s?[-–—]\s?(?:for|to)\s?[-–—]\s?|\s(?:for|to|-|–)\s|\s?:\s?|[-–—]){_NUMBER}(?![\w:/-]|[.,]\d)",
    re.IGNORECASE,
)
_WHOLE = re.compile(rf"(?:an? |the )?({_RATIO.pattern})(?: (?:stock )?split| ratio)?\W*", re.IGNORECASE)
_CLOCK = re.compile(r"\d+:\d\d\W*")
_ASKS = re.compile(r"\b(?:ratio|split|score|result|odds)\b")


def ratio_claimed(pair: Pair) -> bool | None:
    """The answer is a ratio or a score: the first one of the prediction equals it. 5:55 is a time, if not asked for."""
    whole = _WHOLE.fullmatch(pair.gold.strip())
    said = list(_RATIO.finditer(pair.prediction))
    asked = bool(_ASKS.search(pair.lower_question))
    if whole is None or not said or (_CLOCK.fullmatch(pair.gold.strip()) and not asked):
        return None
    between = (pair.prediction[one.end() : other.start()] for one, other in pairwise(said))
    hedged = any(re.search(r"\bor\b", text) for text in between)
    return _values(said[0]) == _values(whole, 2) and not hedged and not denied(pair.prediction, *said[0].span())


def _values(match: re.Match[str], first: int = 1) -> tuple[int, int]:
    one, other = (
        BELOW_100.get(text.lower(), -1) if text.isalpha() else int(text) for text in match.group(first, first + 1)
    )
    return one, other
