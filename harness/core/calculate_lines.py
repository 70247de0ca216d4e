"""From a line that a model wrote to the expression in it: ``Expression: 1,234 * 12% = 148.08`` -> ``1234 * (12/100)``.

Only the notation changes. Whether the result is an expression, and what it is worth, is decided by
:func:`lm_eval_rag.harness.core.calculate.calculate`, which refuses everything that is not in its tables.
"""

from __future__ import annotations

import re

from lm_eval_rag.harness.core.calculate import MAX_LENGTH

_LABEL = re.compile(
    r"^(?:[-*•]\s+)?[*_`]*(?:[a-z ]{0,30}(?<![a-z])(?:expression|answer|result|calculation|output|value|formula|"
    r"total|difference|sum|ratio|average|percentage|growth|change|code|python)(?![a-z])[a-z ]{0,40}[*_`]*\s?:"
    r"[*_`]*\s*)(?=\S)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^\d{1,2}[.)]\s+(?=\S)")  # of a list of calculations
_MARKED = re.compile(r"^(`+|\*{2,3}|__)(.+)\1$")  # Markdown around a whole line
_NAME = re.compile(r"^[A-Za-z_][\w ]{0,40}$")
_EQUALS = re.compile(r"(?<![=<>!])=(?!=)")
_TEXT = re.compile(r"\"[^\"\\\n]*\"|'[^'\\\n]*'")
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "≠": "!="})
_CURRENCY = re.compile(r"[$€£¥](?=\s?[.\d])")
_PERCENT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)%(?=\s*(?:$|[)*/+\],<>=!])|\s+-\s)")  # not "7%2" and "7 % 2"
_SHARE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?%\s+of\s+(?=[\d(.])")
_TIMES = re.compile(r"(?<=[\d)])\s+[xX]\s+(?=[\d(.])")  # with spaces: 0x10 is no product
_SCALES = {
    "hundred": "1e2", "thousand": "1e3", "million": "1e6", "billion": "1e9", "trillion": "1e12",
    "k": "1e3", "K": "1e3", "M": "1e6", "mn": "1e6", "B": "1e9", "bn": "1e9", "T": "1e12",
}  # fmt: skip
_SCALED = re.compile(rf"(?<![\w.])(\d+(?:\.\d+)?)\s?({'|'.join(_SCALES)})\b")
_GROUPS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?!\w|,\d)")
_DAY = re.compile(r"(?<![\w.-])(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\w.-])")
_DAYS = re.compile(r"(?<=timedelta\()days\s?=\s?")
_CALLED = re.compile(r"[A-Za-z_]\($|\[$")


def expression_in(line: str) -> str:
    """The expression in a line, in the notation of ``calculate``; the line itself if it is too long or has texts.

    Read are a number or a label before it, Markdown around them, a result after it (``= 15``), a name that it is
    assigned to, a comment, ``print(...)``, separators of thousands, ``%`` and ``% of``, currency signs, ``million`` and
    the like (also ``2.5B``), ``^``, ``5 x 3``, the signs of print, ISO dates without quotes, and ``days=`` of a time
    span.
    """
    if len(line) > MAX_LENGTH or not line.isprintable():
        return line
    bare = _unmarked(_LABEL.sub("", _unmarked(_NUMBERED.sub("", line.strip(), count=1)), count=1))
    if _TEXT.search(bare):  # what stands in a text stays as it is
        return bare
    bare = _assigned(_DAYS.sub("", bare.partition("#")[0].strip()))
    if bare.startswith("print(") and bare.endswith(")"):
        bare = bare[6:-1].strip()
    bare = _DAY.sub(r"date(\1, \2, \3)", bare)
    bare = _TIMES.sub(" * ", _CURRENCY.sub("", bare.translate(_SIGNS)).replace("^", "**"))
    bare = _SCALED.sub(lambda match: f"({match[1]}*{_SCALES[match[2]]})", _ungrouped(bare))
    return _PERCENT.sub(r"(\1/100)", _SHARE.sub(r"(\1/100) * ", bare))


def _unmarked(text: str) -> str:
    return _MARKED.sub(r"\2", text.strip()).strip("` ")


def _assigned(text: str) -> str:
    """The expression before its result, or after the name that it is assigned to."""
    parts = [part.strip() for part in _EQUALS.split(text)]
    if len(parts) > 1 and _NAME.match(parts[0]):
        parts = parts[1:]
    return parts[0] if all(parts) else text


def _ungrouped(text: str) -> str:
    """Without separators of thousands: outside of calls and lists, or in one with spaces after its commas."""
    spaced = bool(re.search(r",\s", text))

    def joined(match: re.Match[str]) -> str:
        opened = _open_brackets(text[: match.start()])
        return match[0].replace(",", "") if spaced or not any(map(_CALLED.search, opened)) else match[0]

    return _GROUPS.sub(joined, text)


def _open_brackets(text: str) -> list[str]:
    """The text before and with each bracket that is still open."""
    opened: list[int] = []
    for i, char in enumerate(text):
        if char in "([":
            opened.append(i)
        elif char in ")]" and opened:
            opened.pop()
    return [text[max(0, i - 1) : i + 1] for i in opened]
