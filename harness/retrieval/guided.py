"""Rule-guided retrieval (RuleRAG, equation 1), as a plan that any method can use."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.asks import retrieve
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.harness.types import Passage, Plan, Rule


def rule_guided(text: str, rules: Sequence[Rule], k: int) -> Plan[tuple[Passage, ...]]:
    """The top ``k`` passages of the query with one rule at a time, united; of the query alone when there is no rule.

    Returns:
        The union, at most ``k * len(rules)`` passages: the best of each rule in turn, then the second of each, and so
        on, so that its first ``k`` are the result at a budget of ``k`` documents.
    """
    lists = []
    for guided in [f"{text} {rule.text}" for rule in rules] or [text]:
        lists.append((yield from retrieve(guided, k)))
    return round_robin(lists)
