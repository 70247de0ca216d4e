"""What stands before and after a reply in a chat, by the chat template itself: white space, and the turn's last token.

A checkpoint's own files may name only the end of a text as its end token (copies of a chat model in other formats do).
Its replies to a chat would then go on after the turn, up to their limit. So where prompts are chats, the token that the
template puts after a reply ends a reply too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

ASKED, REPLY = "question", "replied"  # a turn of which the template is shown both halves
TURN = ({"role": "user", "content": ASKED}, {"role": "assistant", "content": REPLY})


def turn_end(tokenizer: Any, template: str | None = None) -> int | None:
    """Id of the special token that comes first after a reply; None if there is none, or no template.

    Args:
        tokenizer: One of transformers.
        template: The chat template; None for the tokenizer's own.
    """
    from jinja2 import TemplateError

    given = {"chat_template": template} if template else {}
    try:
        text = str(tokenizer.apply_chat_template(list(TURN), tokenize=False, **given))
    except (TemplateError, TypeError, ValueError, KeyError, IndexError, AttributeError):  # a program of others
        return None
    _, found, after = text.rpartition(REPLY)
    special = special_ids(tokenizer)
    first = max((token for token in special if found and after.lstrip().startswith(token)), key=len, default="")
    return special.get(first)


def reply_start(render: Callable[..., Any]) -> str:
    """The white space between the opening of the model's turn and its reply: "" for most templates.

    It is a space for Mistral's and a line break for GLM-4's. A template that puts more there, such as an empty thought,
    does not tell.

    Args:
        render: lm_eval's ``apply_chat_template`` of the model.
    """
    from jinja2 import TemplateError

    try:
        opened, whole = str(render([TURN[0]])), str(render(list(TURN), add_generation_prompt=False))
    except (TemplateError, TypeError, ValueError, KeyError, IndexError, AttributeError):  # a program of others
        return ""
    before, _, _ = whole.rpartition(REPLY)
    between = before[len(opened) :] if before.startswith(opened) else ""
    return between if between.isspace() else ""


def special_ids(tokenizer: Any) -> dict[str, int]:
    """The special tokens, which no decoded text shows, and their ids."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {str(token): int(id_) for id_, token in added.items() if token.special}


def stop_ids(tokenizer: Any, stops: Sequence[str]) -> list[int]:
    """Ids of the stop strings that are special tokens."""
    special = special_ids(tokenizer)
    return [special[stop] for stop in stops if stop in special]
