"""Fitting a prompt into a generator's room: as many of its best passages as there is space for."""

from __future__ import annotations

from dataclasses import dataclass

from lm_eval_rag.harness.common.errors import TooLongError, UserError
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.generators.base import BYTES_PER_TOKEN, Generator


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt as it is sent.

    Args:
        text: The prompt.
        tokens: Its length, 0 when the model does not tell.
        dropped: Passages left out, the lowest-ranked first.
    """

    text: str
    tokens: int
    dropped: int


def fit(prompt: Prompt | str, generator: Generator, max_tokens: int, limit: int | None = None) -> Fitted | TooLongError:
    """Render a prompt with as many of its best passages as there is room for.

    Args:
        limit: The most tokens of a prompt, beside the model's own context length.

    Raises:
        UserError: The generator was tuned on prompts of another version.
    """
    if isinstance(prompt, Prompt):
        check_version(prompt.template.version, getattr(generator, "prompt_version", None))
    rooms = [room for room in (generator.room(max_tokens), limit) if room is not None]
    lists = [] if isinstance(prompt, str) else [prompt.passages, *(shot.passages for shot in prompt.shots)]
    most = max(map(len, lists), default=0)
    low, high, best = 0, most, None
    while low <= high:  # the largest number of passages that fits; all of them first
        keep = high if best is None and high == most else (low + high) // 2
        text = prompt if isinstance(prompt, str) else prompt.render(keep)
        counted = generator.count_tokens(text)
        size = counted if counted is not None else len(text.encode()) // BYTES_PER_TOKEN
        if not rooms or size <= min(rooms):
            dropped = max(0, len(lists[0]) - keep) if lists else 0
            best, low = Fitted(text, counted or 0, dropped), keep + 1
        else:
            high = keep - 1
    if best is None:
        room = f"{min(rooms)} tokens, even without documents; {max_tokens} more may be needed for the reply"
        return TooLongError(f"the prompt does not fit into {room}")
    return best


def check_version(version: str, tuned: str | None) -> None:
    """Raise a UserError if a checkpoint ``tuned`` on one version of the prompt is to be given another."""
    if tuned is not None and version != tuned:
        raise UserError(
            f"The generator was tuned on prompts of version {tuned!r}; the method's are of version {version!r}. "
            f"Allowed is {tuned!r}: give prompt_file= a file of that version and no answer_style=, or another "
            "generator (`lm-eval-rag train generator` tunes one on the method's prompts)."
        )
