"""Reading short replies of models, without the words and signs that models put around them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lm_eval_rag.harness.core.calculate import calculate
from lm_eval_rag.harness.core.calculate_lines import expression_in
from lm_eval_rag.harness.core.calculate_values import CalculationError
from lm_eval_rag.methods.reasoning.judgements import first_label
from lm_eval_rag.methods.reasoning.rationales import plain

READ = 2_000  # only so many characters of a reply are read
LEAD = re.compile(  # what stands before an answer: "Sure!", a line that ends in a colon, "Answer:"
    r"\A(?:(?:(?:sure|certainly|of course|okay)[.!]\s|[^\n]*:[ \t]*\n|(?:the\s+)?(?:final\s+)?answer(?:\s+is)?\s*:)"
    r"\s*(?=\S))*+",
    re.IGNORECASE,
)


def choice(reply: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that a reply names first; None if there is none.

    Words that "or" or a slash joins are the question repeated ("Static or dynamic: dynamic"), and "not static" does not
    name static: neither counts.
    """
    words = tuple(allowed)
    one = rf"(?:{'|'.join(map(re.escape, words))})"
    repeated = rf"\b{one}(?:(?:\s*[,/]\s*|,?\s+or\s+){one})*(?:\s*/\s*|,?\s+or\s+){one}\b"
    return first_label(re.sub(repeated, "", plain(reply[:READ]), flags=re.IGNORECASE), words)


def code_line(reply: str) -> str:
    """The first line that can be calculated, else the first line of code; "" without one.

    Fences, backticks, a prompt's ``>>>``, ``print(...)`` and ``name =`` are taken off. Lines that end with a colon are
    skipped, as they only introduce the code, and comments.
    """
    lines = [code for line in reply[:READ].splitlines() if (code := _code(line.strip()))]
    return next((line for line in lines if _has_value(line)), lines[0] if lines else "")


def _code(line: str) -> str:
    if line.startswith(("```", "#")) or line.endswith(":"):
        return ""
    bare = line.strip("`").removeprefix(">>>").strip()
    bare = re.sub(r"^[A-Za-z_]\w{0,40}\s*=(?!=)\s*", "", bare)
    return bare[6:-1].strip() if bare.startswith("print(") and bare.endswith(")") else bare


def _has_value(line: str) -> bool:
    try:
        calculate(expression_in(line))
    except CalculationError:
        return False
    return True


def answer_line(reply: str) -> str:
    """The whole reply on one line, without Markdown and what models write before an answer ("Answer:")."""
    return unruled(LEAD.sub("", plain(reply).strip()))


def one_line(text: str) -> str:
    """The same words on one line."""
    return " ".join(text.split())


def unruled(text: str) -> str:
    """On one line, without the dashes and hashes that separate fields."""
    return re.sub(r"(?:\s|^)(?:-{3,}|#{1,6})(?=\s|$)", " ", one_line(text)).strip(" *")


def numbers(reply: str, n: int) -> tuple[int, ...]:
    """The whole numbers of 1 to n in a reply, in order, each once."""
    values = (int(digits) for digits in re.findall(r"\d{1,4}", reply[:READ]))
    return tuple(dict.fromkeys(value for value in values if 1 <= value <= n))
