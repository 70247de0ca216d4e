"""Rule-guided retrieval (RuleRAG, equation 1), as a plan that any method can use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from lm_eval_rag.harness.core.asks import match_rules, retrieve
from lm_eval_rag.harness.core.types import Passage, Plan, Rule
from lm_eval_rag.harness.retrieval.fusion import round_robin

Join = Literal["rule", "body", "replace"]


def _replace(text: str, rule: Rule) -> str:
    return text.replace(rule.head, rule.body) if rule.head in text else f"{text} {rule.body}"


# How question and rule become one text. A whole rule says the head twice more, which drowns the subject in BM25 when
# relations have long names (FB15k-237, NELL-995); the other two say what is looked for and nothing else.
JOINS: dict[Join, Callable[[str, Rule], str]] = {
    "rule": lambda text, rule: f"{text} {rule.text}",  # the paper's concatenation
    "body": lambda text, rule: f"{text} {rule.body}",
    "replace": _replace,  # the paper's degenerated question (appendix A.1)
}


def rule_guided(text: str, rules: Sequence[Rule], k: int, join: Join = "rule") -> Plan[tuple[Passage, ...]]:
    """The top ``k`` passages of the question with one rule at a time, united; of the question alone without rules.

    Returns:
        The union, at most ``k * len(rules)`` passages: the best of each rule in turn, then the second of each, and so
        on, so that its first ``k`` are the result at a budget of ``k`` documents.
    """
    lists = []
    for guided in dict.fromkeys(JOINS[join](text, rule) for rule in rules) or [text]:
        lists.append((yield from retrieve(guided, k)))
    return round_robin(lists)


def question_asked(text: str, degenerated: bool) -> Plan[str]:
    """The question, or if ``degenerated`` what its best rule makes of it: the rule's body in place of the relation.

    RuleRAG's appendix A.1 makes questions of this kind, which stated facts answer without a rule. A question that has
    no rule stays as it is.
    """
    best = (yield from match_rules(text, 1)) if degenerated else ()
    return JOINS["replace"](text, best[0]) if best else text
