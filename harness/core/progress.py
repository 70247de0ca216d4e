"""How a run goes: one bar, or a plain line now and then (:mod:`lm_eval_rag.harness.common.progress`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.core.types import Step


class Bar:
    """Questions done and time left; beside them calls in flight, calls that the journal served, tokens and cost.

    Args:
        total: How many there are; None where that is not known.
        name: What is done, such as the method's name.
        unit: What is counted.
        places: Calls that run at once; further ones wait.
        prices: US dollars per million prompt tokens and per million completion tokens; None where they are unknown.
        file: Where it is written; standard error by default.
    """

    def __init__(
        self,
        total: int | None,
        name: str,
        *,
        unit: str = "questions",
        places: int | None = None,
        prices: tuple[float, float] | None = None,
        file: TextIO | None = None,
    ) -> None:
        self.places, self.prices = places, prices
        self.in_flight = self.journalled = self.tokens = 0
        self.cost = 0.0
        self.meter = Meter(name, total, unit, beside=self._beside, leave=True, file=file)

    def update(self, finished: int, waiting: int, steps: Sequence[Step]) -> None:
        """Count what was just served, and show it if it is time."""
        self.in_flight = waiting
        for step in steps:
            self.journalled += step.journalled
            self.tokens += step.prompt_tokens + step.completion_tokens
            if self.prices is not None and not step.journalled:  # what this run pays
                self.cost += cost_of(step, self.prices)
        self.meter.update(finished)

    def _beside(self) -> str:
        running = self.in_flight if self.places is None else min(self.in_flight, self.places)
        texts = [
            f"{running} calls in flight",
            *([f"{self.in_flight - running} waiting"] if self.in_flight > running else []),
            f"{self.journalled} from the journal",
            f"{self.tokens:,} tokens",
            *([f"${self.cost:.2f}"] if self.prices is not None else []),
        ]
        return ", ".join(texts)

    def close(self) -> None:
        """Leave the last state to be read."""
        self.meter.close()


def cost_of(step: Step, prices: tuple[float, float]) -> float:
    """What a step cost, in US dollars: its tokens at these prices per million."""
    return (step.prompt_tokens * prices[0] + step.completion_tokens * prices[1]) / 1e6
