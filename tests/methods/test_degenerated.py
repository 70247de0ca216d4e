"""``degenerated=True``: the question is asked with its best rule's body, and the rules stay its own (appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import lm_eval_rag
from lm_eval_rag.harness.core.types import Passage, Rule
from lm_eval_rag.harness.generators.base import Decoding

FACTS = [("Ada Moss", "was born in", "Vale"), ("Ada Moss", "likes", "Moor"), ("Bo Reed", "likes", "Vale")]
DOCUMENTS = [Passage(f"d{i}", f"{s} {r} {o}.", fact=(s, r, o)) for i, (s, r, o) in enumerate(FACTS)]
RULES = [
    Rule("is a citizen of", "was born in", support=9, body_support=10, confidence=0.9),
    Rule("is a citizen of", "likes", support=1, body_support=10, confidence=0.1),
]


class Mute:
    """A generator that says one thing."""

    fingerprint, batch = "mute", 8

    def generate(self, prompts: Sequence[str], decoding: Decoding, draws: Sequence[int]) -> list[str]:
        return ["Vale"] * len(prompts)

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        raise AssertionError

    def count_tokens(self, text: str) -> None:
        return None

    def room(self, max_tokens: int) -> None:
        return None


@pytest.mark.parametrize("method", ["standard_rag", "rulerag_icl", "rulerag_ft"])
@pytest.mark.parametrize("relation", ["is a citizen of", "knows"])
@pytest.mark.parametrize("degenerated", [False, True])
def test_what_is_asked(method: str, relation: str, degenerated: bool) -> None:
    question = f"what does Ada Moss {relation} ?"
    ((answer, trace),) = lm_eval_rag.run(
        method, [question], corpus=DOCUMENTS, rules=RULES, generator=Mute(), degenerated=degenerated
    )
    ruled = RULES if relation == RULES[0].head else []
    asked = "what does Ada Moss was born in ?" if degenerated and ruled else question
    guided = [f"{asked} {rule.text}" for rule in ruled if method != "standard_rag"] or [asked]
    assert [step.request for step in trace.steps if step.ask == "Retrieve"] == guided
    (prompt,) = [step.request for step in trace.steps if step.ask == "Generate"]
    assert f"Question: {asked}" in prompt
    assert answer.rules == (None if method == "standard_rag" else tuple(ruled))


@pytest.mark.parametrize("method", ["rule_vote", "rulerag_icl"])
def test_without_rules_it_goes_by_none(method: str) -> None:
    ((answer, trace),) = lm_eval_rag.run(
        method, ["who likes Vale ?"], corpus=DOCUMENTS, rules=RULES, generator=Mute(), n_rules=0
    )
    assert answer.rules is None and trace.count("MatchRules") == 0
