"""Reading short replies of models: what they wrap around them is taken off, what does not fit is None."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORD = re.compile(r"[a-z]+")
READ = 2_000  # characters of a reply that are read


def choice(reply: str, allowed: Iterable[str]) -> str | None:
    """The first of the allowed words that a reply holds; None where it holds none."""
    words = set(allowed)
    return next((word for word in WORD.findall(reply[:READ].lower()) if word in words), None)


def code_line(reply: str) -> str:
    """The first line of code: without fences, backticks, a prompt's ``>>>``, ``print(...)`` or ``name =`` around it.

    A line that ends with a colon only announces it.
    """
    for line in reply[:READ].splitlines():
        bare = line.strip()
        if not bare.startswith("```") and not bare.endswith(":") and bare.strip("`"):
            bare = bare.strip("`").removeprefix(">>>").strip()
            bare = re.sub(r"^[A-Za-z_]\w{0,40}\s*=(?!=)\s*", "", bare)
            return bare[6:-1].strip() if bare.startswith("print(") and bare.endswith(")") else bare
    return ""


def one_line(reply: str) -> str:
    """A reply's first line that is not blank, as it is; after lines that only announce it ("The answer is:")."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return next((line for line in lines if not line.endswith(":")), lines[0] if lines else "")


def numbers(reply: str, n: int) -> tuple[int, ...]:
    """The whole numbers of 1 to n in a reply, in order, each once."""
    found = (int(digits) for digits in re.findall(r"\d{1,4}", reply[:READ]))
    return tuple(dict.fromkeys(number for number in found if 1 <= number <= n))
