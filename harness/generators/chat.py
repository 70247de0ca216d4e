"""Whether a prompt goes through a chat template, and the prompt as it is sent.

An instruct model that gets raw text continues it and does not answer. A model is one if its tokenizer has a chat
template. What was tuned here on raw prompts stays raw, and so do APIs that take text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.checkpoints.locate import Checkpoint
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import Messages
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.generators.turn_end import reply_start

log = logging.getLogger(__name__)
PARAGRAPH = "\n\n"
TEMPLATES = ("chat_template.jinja", "chat_template.json")  # files of their own; older checkpoints have a key
CONFIG = "tokenizer_config.json"


@dataclass(frozen=True, slots=True)
class Form:
    """The form in which prompts are sent.

    Args:
        chat: Through the chat template, as one user message; else as raw text.
        why: The reason, in words.
    """

    chat: bool
    why: str

    def __str__(self) -> str:
        return f"{'chat' if self.chat else 'raw text'}: {self.why}"


def form_of(spec: ModelSpec, asked: bool | None = None) -> Form:
    """The form for a model.

    Args:
        asked: What the user says: True or False; None leaves it to the model.
    """
    rules: tuple[tuple[Callable[[], bool], bool, str], ...] = (  # the first that holds decides
        (lambda: spec.is_chat_api, True, "the API takes messages"),
        (lambda: asked is True, True, "asked for"),
        (lambda: asked is False, False, "chat=False"),
        (lambda: spec.is_api, False, "the API takes text"),
        (lambda: bool(spec.note and spec.note.prompt), False, "it was tuned on raw prompts"),
        (lambda: has_template(spec), True, "the tokenizer has a chat template (chat=False turns it off)"),
    )
    chat, why = next(
        ((chat, why) for holds, chat, why in rules if holds()), (False, "the tokenizer has no chat template")
    )
    return Form(chat, why)


def has_template(spec: ModelSpec) -> bool:
    """Whether the tokenizer of a checkpoint has a chat template; False where there is none to look at."""
    name = spec.tokenizer
    if name is None:
        return False
    try:
        folder = Path(fetch_folder(name, only=[CONFIG, *TEMPLATES]))
    except UserError:
        return False  # building the model says what is wrong with its name
    files = Checkpoint(folder, name)
    return any(map(files.has, TEMPLATES)) or bool(files.read(CONFIG).get("chat_template"))


def as_text(prompt: str, system: str | None) -> str:
    """The prompt after an instruction, which ends in white space of its own or an empty line."""
    before = system or ""
    return f"{before}{'' if not before or before[-1].isspace() else PARAGRAPH}{prompt}"


def as_chat(lm: Any, spec: ModelSpec, prompt: str, system: str | None) -> Any:
    """The prompt as one user message, after a system message if there is one, through the model's chat template.

    A prompt of two messages (:class:`.Messages`) gives both; a system instruction of the run stands before its own. The
    beginning of its reply stands as it is after the rendered messages, whose end opens the model's turn. A chat API
    cannot be asked to go on in its turn: it gets that beginning at the end of the user message.

    Args:
        lm: The lm_eval model of ``spec``.

    Returns:
        Text, or what lm_eval sends to a chat API.

    Raises:
        UserError: There is no chat template.
    """
    reply = ""
    if isinstance(prompt, Messages):
        system = as_text(prompt.system, system) if prompt.system else system
        if prompt.begun and spec.is_chat_api:
            warn_of_replies(spec.name)
        reply, prompt = ("", prompt.user_and_begun) if spec.is_chat_api else (prompt.begun, prompt.user)
    messages = [{"role": "system", "content": system}] if system else []
    try:
        sent = lm.apply_chat_template([*messages, {"role": "user", "content": prompt}])
        if spec.is_chat_api:
            return sent
        if isinstance(sent, str):
            return sent + reply
        raise ValueError("gen_tokenizer= names no tokenizer")
    except (ValueError, NotImplementedError, AttributeError) as error:
        raise UserError(
            f"generator={spec.name} has no chat template ({error}). Leave out chat=True, and run without "
            "--apply_chat_template."
        ) from None


def as_written(lm: Any, prompt: str, continuation: str) -> str:
    """A continuation as the model writes it in a chat: one space at its beginning belongs to raw text.

    Args:
        lm: The lm_eval model.
        prompt: Where it has begun the reply, the space stays.
    """
    begun = isinstance(prompt, Messages) and prompt.begun
    if begun or not continuation.startswith(" "):
        return continuation
    return reply_start(lm.apply_chat_template) + continuation[1:]


@cache
def warn_of_replies(name: str) -> None:
    """Say once of a generator that it does not go on in a reply that is begun."""
    log.warning(
        "generator=%s takes messages and cannot go on in a reply: what the model has said so far stands at the end of "
        "the user message. A local model goes on in its reply, and so does generator=local-completions with "
        "gen_tokenizer= and chat=True.",
        name,
    )
