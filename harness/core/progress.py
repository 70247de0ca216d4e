"""How a run goes, on standard error: one bar on a terminal, else a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from tqdm import tqdm

from lm_eval_rag.harness.core.types import Step

EVERY = 30.0  # seconds between two lines where there is no terminal


class Bar:
    """Questions done and time left; beside them calls in flight, calls that the journal served, tokens and cost.

    Args:
        questions: How many there are.
        name: What is done, such as the method's name.
        prices: US dollars per million prompt tokens and per million completion tokens; None where they are unknown.
        file: Where it is written; standard error by default.
    """

    def __init__(
        self, questions: int, name: str, *, prices: tuple[float, float] | None = None, file: TextIO | None = None
    ) -> None:
        self.questions, self.name, self.prices = questions, name, prices
        self.file = sys.stderr if file is None else file
        self.done = self.in_flight = self.journalled = self.tokens = 0
        self.cost = 0.0
        self._began = self._written = time.monotonic()
        self._bar = tqdm(total=questions, desc=name, unit="q", file=self.file) if self.file.isatty() else None

    def update(self, finished: int, waiting: int, steps: Sequence[Step]) -> None:
        """Count what was just served, and show it if it is time."""
        self.done += finished
        self.in_flight = waiting
        for step in steps:
            self.journalled += step.journalled
            self.tokens += step.prompt_tokens + step.completion_tokens
            if self.prices is not None and not step.journalled:  # what this run pays
                self.cost += cost_of(step, self.prices)
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(self._beside()), refresh=False)
            self._bar.update(finished)
        elif time.monotonic() - self._written >= EVERY:
            self._write()

    def _beside(self) -> list[str]:
        texts = [f"{self.in_flight} calls in flight", f"{self.journalled} from the journal", f"{self.tokens:,} tokens"]
        return [*texts, f"${self.cost:.2f}"] if self.prices is not None else texts

    def _write(self) -> None:
        now = time.monotonic()
        left = (now - self._began) / self.done * (self.questions - self.done) if self.done else None
        told = "time left unknown" if left is None else f"about {left:.0f} s left"
        self.file.write(f"{self.name}: {self.done}/{self.questions} questions, {', '.join(self._beside())}, {told}\n")
        self.file.flush()
        self._written = now

    def close(self) -> None:
        """Leave the last state to be read."""
        if self._bar is not None:
            self._bar.close()
        elif self.done < self.questions or self._written > self._began:  # an interrupted or a long run
            self._write()


def cost_of(step: Step, prices: tuple[float, float]) -> float:
    """What a step cost, in US dollars: its tokens at these prices per million."""
    return (step.prompt_tokens * prices[0] + step.completion_tokens * prices[1]) / 1e6
