"""Tokens of BM25: runs of Unicode letters, digits and underscores of the lowercased text; no stemming, no stop words.

An ISO date is three tokens, as in Lucene's standard analyser; ``dates=whole`` makes it one.
"""

from __future__ import annotations

import re
from typing import Literal

Dates = Literal["whole", "split"]
TOKENS = {"whole": re.compile(r"\d{4}-\d{2}-\d{2}|\w+"), "split": re.compile(r"\w+")}


def tokenize(text: str, dates: Dates = "split") -> list[str]:
    """The tokens of a text, in order."""
    return TOKENS[dates].findall(text.lower())
