"""Sentences of a text: split by Blingfire, as CRAG's method publishes it, or by rules that need no package."""

from __future__ import annotations

import re

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line

END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s|$)|[。！？]++[\"')\]」』”’）]*+")
SHORT_FORM = re.compile(  # what a full stop ends without ending the sentence
    r"(?:\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Inc|Ltd|Co|Gen|Col|Capt|Lt|Rev|Hon|Mt|ca|approx)"
    r"|\b[A-Za-z](?:\.[A-Za-z])+)\.$"
)


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without blank ones, each on one line.

    As published, the whole text is split at once, so that a heading or a list item without a full stop is joined to the
    next sentence.

    Raises:
        UserError: blingfire is not installed.
    """
    try:
        from blingfire import text_to_sentences
    except ImportError as error:
        raise UserError(
            f"Sentences need blingfire ({error}). Install what reading needs: {install_line('web')}"
        ) from None
    lines = (line.strip() for line in text_to_sentences(text).split("\n"))
    return [line for line in lines if line]


def plain_sentences(text: str) -> list[str]:
    """The sentences of a text in order. Initials, "Dr.", "U.S." and decimals do not end one; line breaks do."""
    found: list[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        begin = 0
        for end in END.finditer(line):
            if end.end() < len(line) and SHORT_FORM.search(line[max(begin, end.end() - 12) : end.end()]):
                continue
            found.append(line[begin : end.end()].strip())
            begin = end.end()
        found.append(line[begin:].strip())
    return [sentence for sentence in found if sentence]
