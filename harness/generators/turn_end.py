"""The token that ends a turn of a chat, by the chat template itself.

A checkpoint's own files may name only the end of a text as its end token (copies of a chat model in other formats do).
Its replies to a chat would then go on after the turn, up to their limit. So where prompts are chats, the token that the
template puts after a reply ends a reply too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ASKED, REPLY = "question", "replied"  # a turn of which the template is shown both halves


def turn_end(tokenizer: Any, template: str | None = None) -> int | None:
    """Id of the special token that comes first after a reply; None if there is none, or no template.

    Args:
        tokenizer: One of transformers.
        template: The chat template; None for the tokenizer's own.
    """
    from jinja2 import TemplateError

    messages = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": REPLY}]
    given = {"chat_template": template} if template else {}
    try:
        text = str(tokenizer.apply_chat_template(messages, tokenize=False, **given))
    except (TemplateError, TypeError, ValueError, KeyError, IndexError, AttributeError):  # a program of others
        return None
    _, found, after = text.rpartition(REPLY)
    special = special_ids(tokenizer)
    first = max((token for token in special if found and after.lstrip().startswith(token)), key=len, default="")
    return special.get(first)


def special_ids(tokenizer: Any) -> dict[str, int]:
    """The special tokens, which no decoded text shows, and their ids."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {str(token): int(id_) for id_, token in added.items() if token.special}


def stop_ids(tokenizer: Any, stops: Sequence[str]) -> list[int]:
    """Ids of the stop strings that are special tokens."""
    special = special_ids(tokenizer)
    return [special[stop] for stop in stops if stop in special]
