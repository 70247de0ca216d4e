"""The rule bank: rule selection R_q (RuleRAG, section 3.1) and its controls.

It recognises the question's subject and relation from its text, as the paper does, and gives the rules with that head.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import get_args

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.core.asks import RuleControl, RuleOrder
from lm_eval_rag.harness.core.types import Rule
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.rules.controls import random_rules, shuffled_rules
from lm_eval_rag.harness.rules.recognise import Recogniser, Recognition

ORDERS: dict[str, Callable[[Rule], float]] = {
    "confidence_support": lambda rule: rule.confidence * math.sqrt(rule.support),
    "confidence": lambda rule: rule.confidence,
}
CONTROLS = get_args(RuleControl)


class RuleBank:
    """The rules of one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._by_head: dict[str, list[Rule]] = defaultdict(list)
        for rule in corpus.rules():
            self._by_head[rule.head].append(rule)

    def recognise(self, text: str) -> Recognition:
        """The question's subject and relation, as :mod:`lm_eval_rag.harness.rules.recognise` tells them."""
        return self._recogniser.recognise(text)

    def match(
        self,
        text: str,
        k: int,
        order: RuleOrder = "confidence_support",
        control: RuleControl = "selected",
        repeat: bool = False,
        seed: int = 0,
        gold: Sequence[str] | None = None,
    ) -> tuple[Rule, ...]:
        """At most ``k`` rules for a question, best first, ties by body; () when none has its relation as head.

        Args:
            text: The question.
            k: 0 or more.
            order: As in :class:`~lm_eval_rag.harness.core.asks.MatchRules`; ``control``, ``repeat``, ``seed`` too.
            gold: The gold answers; used by the oracle alone: it gives the rules of whose body a document states a fact
                about the subject and a gold answer.

        Raises:
            UserError: Unknown order or control, k below 0, or the oracle without gold answers.
        """
        at_least("number of rules", k, 0)
        if order not in ORDERS:
            raise unknown("rule order", order, ORDERS)
        if control not in CONTROLS:
            raise unknown("rule control", control, CONTROLS)
        found = self.recognise(text)
        worth = ORDERS[order]
        fitting = [rule for rule in self._by_head.get(found.relation or "", ()) if repeat or not rule.repeat]
        fitting.sort(key=lambda rule: (-worth(rule), rule.body))
        if control == "oracle":
            return tuple(self._reaching(fitting, found.subject, gold))[:k]
        if control == "selected" or found.relation is None:
            return tuple(fitting[:k])
        draw = {"random": random_rules, "shuffled": shuffled_rules}[control]
        bank = [rule for rule in self._corpus.rules() if repeat or not rule.repeat]
        return tuple(draw(fitting[:k], found.relation, bank, random.Random(f"{control} {seed} {text}")))

    def _reaching(self, rules: Iterable[Rule], subject: str | None, gold: Sequence[str] | None) -> list[Rule]:
        if gold is None:
            raise UserError("rules='oracle' needs the gold answers, and this run has none. Take another control.")
        answers = set(gold)
        bodies = {relation for relation, object, _ in self._corpus.facts(subject or "") if object in answers}
        return [rule for rule in rules if rule.body in bodies]

    @cached_property
    def _recogniser(self) -> Recogniser:
        return Recogniser(self._corpus.entities, self._corpus.relations, self._corpus.wordings())
