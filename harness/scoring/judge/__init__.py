"""Judges: whether a prediction says the same as an answer, for what the specification of a benchmark leaves open.

``rules`` needs no model; every other name is an lm_eval model, asked with our own prompt. A judge gives an opinion or
fails; what it fails on stays unscored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.scoring.judge import rule_judge
from lm_eval_rag.harness.scoring.verdict import RULES


@dataclass(frozen=True, slots=True)
class Item:
    """What a judge sees: the question, the answers accepted for it (at least one), and the prediction, already cut."""

    question: str
    answers: tuple[str, ...]
    prediction: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """1 for correct, 0 for wrong, and the judge's reason."""

    correct: float
    why: str = ""


class Judge(Protocol):
    """Gives opinions.

    Attributes:
        name: As recorded beside every verdict.
        fingerprint: Names everything its opinions depend on; no secrets.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One a item, in order; a CallError where the judge failed or did not keep to the format."""
        ...


@dataclass(frozen=True, slots=True)
class RulesJudge:
    """The rules of :mod:`lm_eval_rag.harness.scoring.judge.rule_judge`; never fails."""

    name: str = RULES
    fingerprint: str = f"{RULES} {rule_judge.VERSION}"

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One a item, in order."""
        return [Opinion(*rule_judge.judge(item.question, item.answers, item.prediction)) for item in items]
