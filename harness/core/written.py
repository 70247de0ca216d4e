"""A reply with the log-probabilities that its model gave with it, as chat APIs can (``gen_logprobs=True``)."""

from __future__ import annotations

from collections.abc import Iterable

UNTOLD = -9999.0  # what OpenAI's API says of a token that is not among the likeliest, in place of its ln P
Tokens = Iterable[tuple[str, float]]


class Written(str):
    """A reply, a text like any other, that knows how probable it was.

    Args:
        text: The reply, without what the model thought and without its stop string.
        tokens: (text, natural-log probability) of each token that spells it; blank characters do not count.
        first: Likewise the likeliest tokens in the place of its first word, as many as the ask's ``alternatives``.
    """

    tokens: tuple[tuple[str, float], ...]
    first: tuple[tuple[str, float], ...]

    def __new__(cls, text: str, tokens: Tokens = (), first: Tokens = ()) -> Written:
        made = super().__new__(cls, text)
        made.tokens = tuple((token, float(log)) for token, log in tokens)
        made.first = tuple((token, float(log)) for token, log in first)
        return made

    def __getnewargs__(self) -> tuple[str, Tokens, Tokens]:  # type: ignore[override]
        """For copies and pickles."""
        return str(self), self.tokens, self.first

    @property
    def told(self) -> bool:
        """Whether the probability of each of its tokens is known."""
        return all(log > UNTOLD for _, log in self.tokens)

    def log(self, part: str | None = None) -> float:
        """The natural-log probability of the reply up to the end of ``part``; 0 for a blank one.

        Args:
            part: A text that stands in it, such as its first sentence; all of it for None, or where it does not.
        """
        whole, wanted = _dense(self), _dense(self if part is None else part)
        place = whole.find(wanted)
        left, total = len(whole) if place < 0 else place + len(wanted), 0.0
        for token, log in self.tokens:
            if left <= 0:
                break
            left -= len(_dense(token))
            total += log
        return total


def _dense(text: str) -> str:
    """The text without blank characters."""
    return "".join(text.split())
