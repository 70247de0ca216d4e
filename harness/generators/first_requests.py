"""The first requests of a run: when all fail alike, no later one would be answered, so the run stops and says why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.common.errors import UserError

LOOKED_AT = 8  # failures without any answer that end a run
HINTS = (  # of servers of generators
    (r"no log-probabilities", "it gives none of a prompt: take generator=hf, or a server that has echo"),
    (r"log-?probs?\b", "it gives no log-probabilities of replies, or not with this model: leave out gen_logprobs=True"),
    (r"no text", "its replies are empty: a model that thinks first needs room, gen_thinking_tokens=4096"),
    (r"max_completion_tokens", "generator=openai-chat-completions with gen_base_url= sends max_completion_tokens"),
    (r"prompt.*(string|str\b)", "it wants text, not token ids: gen_tokenized_requests=False"),
    (r"chat.?template", "its model has no chat template: generator=local-completions, and gen_base_url= its path"),
    (r"messages|prompt", "generator= (chat or completions) and the path in gen_base_url= must belong together"),
    (r"context|too long|max(imum)?.{0,12}length", "the prompts are too long: gen_max_length= or max_prompt_tokens="),
    (r"max_tokens|max_new_tokens", "the length of a reply: --gen_kwargs max_gen_toks="),
    (r"\bstop\b", "the stop strings: --gen_kwargs until="),
    (r"temperature", "the temperature: --gen_kwargs temperature="),
    (r"model", "the model's name: gen_model="),
)
OTHERWISE = "gen_model=, gen_base_url= or generator="


@dataclass(slots=True)
class FirstRequests:
    """Counts the failures of a run until its first answer.

    Args:
        server: Whose server it is.
        hints: What a server's words point to, and the argument to change; the first that fits.
        otherwise: What to change if none fits.
    """

    server: str = "generator"
    hints: Sequence[tuple[str, str]] = HINTS
    otherwise: str = OTHERWISE
    kinds: list[str] = field(default_factory=list)
    over: bool = False

    def answered(self) -> None:
        """A request was answered, so later failures are their own affair."""
        self.over = True

    def failed(self, kind: str, words: str, *, at_once: bool = False) -> UserError | None:
        """A request failed for good; the error that ends the run if none was answered and all failed alike.

        Args:
            kind: What makes two failures alike.
            words: What the server said.
            at_once: Whether so many tries failed alike already that no more requests are waited for.
        """
        if self.over:
            return None
        self.kinds.append(kind)
        if not at_once and (len(self.kinds) < LOOKED_AT or len(set(self.kinds)) > 1):
            return None
        self.over = True
        hint = next((hint for pattern, hint in self.hints if re.search(pattern, words, re.IGNORECASE)), self.otherwise)
        return UserError(
            f"The {self.server}'s server answered none of the first {LOOKED_AT} requests, and all failed alike: "
            f"{words}. To change: {hint}. The same command again asks only what is missing."
        )
