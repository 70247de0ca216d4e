"""Judges decide whether a prediction means the same as an answer, if the benchmark's specification does not.

``rules`` needs no model. Every other name is an lm_eval model, which is called with our own prompt. A judge gives an
opinion or fails; if it fails, the answer is unscored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.scoring.judge import rule_judge
from lm_eval_rag.harness.scoring.verdict import REFUSAL, RULES


@dataclass(frozen=True, slots=True)
class Item:
    """Input of a judge: the question, its gold answers (at least one), and the truncated prediction.

    A judge of rationales gets the retrieved passages in place of the answers, and the rationale as the prediction.
    """

    question: str
    answers: tuple[str, ...]
    prediction: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """1 for correct, 0 for wrong or missing, and the judge's reason.

    Args:
        missing: Whether the judge finds that the prediction refuses to answer.
    """

    correct: float
    why: str = ""
    missing: bool = False


class Judge(Protocol):
    """A judge.

    Attributes:
        name: Recorded with every verdict.
        fingerprint: Identifies everything that its opinions depend on; no secrets.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One opinion per item, in order; a CallError if the judge failed or its reply has the wrong format."""
        ...


@dataclass(frozen=True, slots=True)
class RulesJudge:
    """The judge of :mod:`lm_eval_rag.harness.scoring.judge.rule_judge`; it never fails."""

    name: str = RULES
    fingerprint: str = f"{RULES} {rule_judge.VERSION}"

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One opinion per item, in order."""
        verdicts = [rule_judge.judge(item.question, item.answers, item.prediction) for item in items]
        return [Opinion(correct, why, why == REFUSAL) for correct, why in verdicts]
