"""Models that think before they answer: room for the thought, and what is thought and what is answer."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache

from lm_eval_rag.harness.generators.base import Decoding

log = logging.getLogger(__name__)
THOUGHT_END = "</think>"
THOUGHT_START = "<think>"


def with_room(decoding: Decoding, tokens: int, *, stops: bool) -> Decoding:
    """With room for a thought, and where the reply is cut at stop strings afterwards without any that would end it.

    Args:
        tokens: Of the thought, at most; 0 changes nothing.
        stops: Whether stop strings stay: whoever generates knows that they end no thought.
    """
    if not tokens:
        return decoding
    kept = decoding.stop if stops or decoding.thinking else ()
    return replace(decoding, max_tokens=decoding.max_tokens + tokens, stop=kept)


def split_thinking(text: str, end: str = THOUGHT_END, cut_off: bool = False) -> tuple[str, str]:
    """What a reasoning model thought, and its answer: ("", text) where it did not think aloud.

    A thought that was cut off leaves no answer.

    Args:
        end: What ends a thought.
        cut_off: Whether a text without it is a thought that was cut off, although nothing marks its beginning:
            templates of some models begin it in the prompt.
    """
    thinking, ended, answer = text.rpartition(end)
    if ended:
        return thinking.replace(THOUGHT_START, "", 1).strip(), answer.lstrip()
    if cut_off or text.lstrip().startswith(THOUGHT_START):
        return text.replace(THOUGHT_START, "", 1).strip() or text.strip(), ""
    return "", text


@cache
def warn_of_thoughts(name: str, model: str) -> None:
    """Say once that a chat template begins a thought and the model is not known to think."""
    log.warning(
        "The chat template of generator=%s (%s) begins a thought. Give gen_thinking_tokens=4096: without it, a thought "
        "that a stop string or the token limit ends counts as the answer.",
        name,
        model,
    )
