"""Fitting a prompt into a generator's room: as many of its best passages as there is space for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lm_eval_rag.harness.common.errors import TooLongError, UserError
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.generators.base import BYTES_PER_TOKEN, Generator

LONGEST_TOKEN = 64  # characters; a text of more for each token of the room is too long, and its tokens are not counted


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt as it is sent.

    Args:
        text: The prompt.
        tokens: Its length, 0 when the model does not tell.
        shown: The question's passages in it, best first, as they stand there.
        dropped: Passages of the question left out, the lowest-ranked first.
        cut: Passages that are longer than the room by themselves, so that only their beginning could be shown.
    """

    text: str
    tokens: int
    shown: tuple[Passage, ...] = ()
    dropped: int = 0
    cut: int = 0


def fit(prompt: Prompt | str, generator: Generator, max_tokens: int, limit: int | None = None) -> Fitted | TooLongError:
    """Render a prompt with as many of its best passages as there is room for.

    A passage that would not even fit alone is cut to its share of the room: else it would keep out all after it.

    Args:
        limit: The most tokens of a prompt, beside the model's own context length.

    Raises:
        UserError: The generator was tuned on prompts of another version.
    """
    room = min((room for room in (generator.room(max_tokens), limit) if room is not None), default=None)

    def tokens_of(text: str) -> int | None:
        """The tokens of a text that fits, 0 when the model does not tell; None for a text that does not fit."""
        if room is not None and len(text) > LONGEST_TOKEN * room:
            return None
        counted = generator.count_tokens(text)
        size = len(text.encode()) // BYTES_PER_TOKEN if counted is None else counted
        return counted or 0 if room is None or size <= room else None

    if isinstance(prompt, str):
        tokens = tokens_of(prompt)
        fitted = None if tokens is None else Fitted(prompt, tokens)
    else:
        check_version(prompt.template.version, getattr(generator, "prompt_version", None))
        fitted = _fitted(prompt, tokens_of)
        if fitted and fitted.dropped and tokens_of(_alone(prompt, prompt.passages[len(fitted.shown)])) is None:
            shorter = tuple(_beginning(prompt, passage, tokens_of) for passage in prompt.passages)
            cut = sum(new is not old for new, old in zip(shorter, prompt.passages, strict=True))
            again = _fitted(replace(prompt, passages=shorter), tokens_of)
            fitted = again and replace(again, cut=cut)
    if fitted is None:
        return TooLongError(
            f"the prompt does not fit into {room} tokens, even without documents; {max_tokens} more may be needed for "
            "the reply"
        )
    return fitted


def _fitted(prompt: Prompt, tokens_of: Callable[[str], int | None]) -> Fitted | None:
    """The prompt with the largest number of passages that fits; None if it does not fit without any."""
    most = max(len(prompt.passages), *(len(shot.passages) for shot in prompt.shots), 0)
    low, high, best, keep = 0, most, None, most
    while low <= high:  # all of them first
        tokens = tokens_of(text := prompt.render(keep))
        if tokens is None:
            high = keep - 1
        else:
            shown = prompt.passages[:keep]
            best, low = Fitted(text, tokens, shown, len(prompt.passages) - len(shown)), keep + 1
        keep = (low + high) // 2
    return best


def _alone(prompt: Prompt, passage: Passage, times: int = 1) -> str:
    """The prompt with one passage, and none in its worked examples."""
    shots = tuple(replace(shot, passages=()) for shot in prompt.shots)
    return replace(prompt, passages=(passage,) * times, shots=shots).render()


def _beginning(prompt: Prompt, passage: Passage, tokens_of: Callable[[str], int | None]) -> Passage:
    """The passage if it fits alone, else as much of it as would fit once for each passage, in whole words."""
    if tokens_of(_alone(prompt, passage)) is not None:
        return passage
    low, high = 0, len(passage.text)
    while low < high:
        middle = (low + high + 1) // 2
        short = replace(passage, text=passage.text[:middle])
        fits = tokens_of(_alone(prompt, short, len(prompt.passages))) is not None
        low, high = (middle, high) if fits else (low, middle - 1)
    text = passage.text[:low]
    return replace(passage, text=text.rpartition(" ")[0] or text) if text else passage


def check_version(version: str, tuned: str | None) -> None:
    """Raise a UserError if a checkpoint ``tuned`` on one version of the prompt is to be given another."""
    if tuned is not None and version != tuned:
        raise UserError(
            f"The generator was tuned on prompts of version {tuned!r}; the method's are of version {version!r}. "
            f"Allowed is {tuned!r}: give prompt_file= a file of that version and no answer_style=, or another "
            "generator (`lm-eval-rag train generator` tunes one on the method's prompts)."
        )
