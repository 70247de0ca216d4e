"""The one progress bar of a run."""

from __future__ import annotations

from collections.abc import Sequence

from tqdm import tqdm

from lm_eval_rag.harness.core.types import Step


class Bar:
    """Questions done and time left, and beside them calls in flight, calls served by the journal, and tokens."""

    def __init__(self, questions: int, name: str, *, shown: bool = True) -> None:
        self._bar = tqdm(total=questions, desc=name, unit="q", disable=not shown)
        self._journalled = 0
        self._tokens = 0

    def update(self, finished: int, waiting: int, steps: Sequence[Step]) -> None:
        """Count what was just served, and redraw."""
        self._journalled += sum(step.journalled for step in steps)
        self._tokens += sum(step.prompt_tokens + step.completion_tokens for step in steps)
        self._bar.set_postfix(
            {"in flight": waiting, "from journal": self._journalled, "tokens": self._tokens}, refresh=False
        )
        self._bar.update(finished)

    def close(self) -> None:
        """Leave the last line as it stands."""
        self._bar.close()
