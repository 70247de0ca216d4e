"""What the hand-written parsers share: tokens, and a recursive descent whose depth is bounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: ``kind`` is the name of the group that matched, ``end`` behind the last one."""

    kind: str
    text: str
    place: int


class Descent:
    """A parser of one text, one method a rule of the grammar; a subclass adds the rules and its errors.

    Args:
        text: What is parsed.

    Attributes:
        pattern: Matches one token, with the space before it; its groups are kinds, ``name`` and ``sign`` among them.
        most: Rules within each other at most, see :meth:`deeper`.
    """

    pattern: ClassVar[re.Pattern[str]]
    most: ClassVar[int]

    def __init__(self, text: str) -> None:
        self.tokens, self.at, self.depth = self._split(text.rstrip()), 0, 0

    def wrong(self, place: int, said: str) -> Exception:
        """The error for a text that the grammar does not know; ``place`` counts characters from 0."""
        raise NotImplementedError

    def too_deep(self) -> Exception:
        """The error for more than ``most`` rules within each other."""
        raise NotImplementedError

    def _split(self, text: str) -> list[Token]:
        tokens, place = [], 0
        while place < len(text):
            found = self.pattern.match(text, place)
            if found is None or found.lastgroup is None:
                raise self.wrong(place, f"{text[place : place + 20].strip()!r} cannot be read")
            tokens.append(Token(found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup)))
            place = found.end()
        return [*tokens, Token("end", "", len(text))]

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def take(self, *texts: str) -> str | None:
        """Step over the next token if it is one of these names or signs."""
        if self.token.kind in ("name", "sign") and self.token.text in texts:
            self.at += 1
            return self.tokens[self.at - 1].text
        return None

    def need(self, *texts: str) -> str:
        """Step over one of these names or signs, which must come next."""
        return self.take(*texts) or self.fail(" or ".join(map(repr, texts)))

    def fail(self, expected: str) -> NoReturn:
        """Raise, since something else was expected next."""
        found = repr(self.token.text[:40]) if self.token.kind != "end" else "the end"
        raise self.wrong(self.token.place, f"expected {expected}, found {found}")

    def deeper(self, rule: Callable[[], Any]) -> Any:
        """What a rule gives that may hold itself."""
        self.depth += 1
        if self.depth > self.most:
            raise self.too_deep()
        result = rule()
        self.depth -= 1
        return result
