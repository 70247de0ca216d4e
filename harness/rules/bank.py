"""The rule bank: rule selection R_q (RuleRAG, section 3.1) and its controls.

As in the paper, the subject and the relation are recognised from the text of the question. The rules with this relation
as head match.
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
from lm_eval_rag.harness.rules.controls import CONTROL_RULES, Drawn
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
        """The subject and the relation of a question (:mod:`lm_eval_rag.harness.rules.recognise`)."""
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
        """At most ``k`` rules for a question, best first, ties by body; () if no rule matches.

        Controls know only rules of length 1: they exchange one relation for another.

        Args:
            text: The question.
            k: 0 or more.
            order: As in :class:`~lm_eval_rag.harness.core.asks.MatchRules`; also ``control``, ``repeat``, ``seed``.
            gold: The gold answers, used by the oracle alone. It takes the rules for which a document states
                (subject, body, gold answer).

        Raises:
            UserError: An unknown order or control, k below 0, or the oracle without gold answers.
        """
        at_least("number of rules", k, 0)
        if order not in ORDERS:
            raise unknown("rule order", order, ORDERS)
        if control not in CONTROLS:
            raise unknown("rule control", control, CONTROLS)
        subject, relation = self.recognise(text)
        score = ORDERS[order]
        short = control != "selected"
        rules = [rule for rule in self._by_head.get(relation or "", ()) if _wanted(rule, repeat, short)]
        rules.sort(key=lambda rule: (-score(rule), rule.body))
        if control == "oracle":
            return tuple(self._oracle_rules(rules, subject, gold))[:k]
        if control == "selected" or relation is None:
            return tuple(rules[:k])
        bank = [rule for rule in self._corpus.rules() if _wanted(rule, repeat, short)]
        drawn = Drawn(rules[:k], relation, bank, random.Random(f"{control} {seed} {text}"), self._corpus.beside)
        return tuple(CONTROL_RULES[control](drawn))

    def _oracle_rules(self, rules: Iterable[Rule], subject: str | None, gold: Sequence[str] | None) -> list[Rule]:
        if gold is None:
            raise UserError("rules='oracle' needs the gold answers, and this run has none. Choose another control.")
        answers = set(gold)
        bodies = {relation for relation, object, _ in self._corpus.facts(subject or "") if object in answers}
        return [rule for rule in rules if rule.body in bodies]

    @cached_property
    def _recogniser(self) -> Recogniser:
        return Recogniser(self._corpus.entities, self._corpus.relations, self._corpus.wordings(), self._corpus.forms)


def _wanted(rule: Rule, repeat: bool, short: bool) -> bool:
    return (repeat or not rule.repeat) and not (short and rule.path)
