"""Sentences of a text, split by Blingfire as published."""

from __future__ import annotations

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line


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
