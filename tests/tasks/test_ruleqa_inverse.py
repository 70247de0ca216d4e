"""Inverse rules: in the bank by option, read back, in words, and in the vote."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.core.types import Answer, Passage, Query, Rule
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.rules.mining import best_first, mine_temporal
from lm_eval_rag.methods.rule_vote import rule_vote
from lm_eval_rag.tasks.ruleqa.build import build


def test_the_bank_has_inverse_rules_by_option(mirror: Path | None, cache: Path) -> None:
    corpora = [build("ruleqa_i"), build("ruleqa_i", inverse=True)]
    plain, turned = (pl.read_parquet(cache / corpus / "rules.parquet") for corpus in corpora)
    assert "inverse" not in plain.columns
    assert turned.filter(~pl.col("inverse")).drop("inverse").equals(plain)
    found = turned.filter("inverse")
    mined = mine_temporal(pl.read_parquet(cache / corpora[1] / "corpus.parquet"), inverse=True)
    best = best_first(mined.filter(pl.col("support") >= 3)).head(557)
    assert found.select(best.columns).equals(best) and not found["repeat"].any()
    queries = [pl.read_parquet(cache / corpus / "queries.parquet") for corpus in corpora]
    assert queries[0].equals(queries[1])  # slices count inverse rules either way
    rules = open_corpus(corpora[1]).rules()
    assert sum(rule.inverse for rule in rules) == 557
    assert not any(rule.inverse for rule in open_corpus(corpora[0]).rules())


def test_an_inverse_rule_in_words() -> None:
    rule = Rule("spouse", "husband of", inverse=True)
    assert rule.text == "[Entity2, husband of, Entity1] leads to [Entity1, spouse, Entity2]"


def vote(rules: tuple[Rule, ...], facts: list[tuple[str, str, str]]) -> Answer:
    plan: Any = rule_vote(Query("q", "what does Ann spouse ?"))
    plan.send(None)
    passages = tuple(Passage(f"d{i}", " ".join(fact), fact=fact) for i, fact in enumerate(facts))
    plan.send(rules)
    with pytest.raises(StopIteration) as stopped:
        plan.send(passages)
    answer: Answer = stopped.value.value
    return answer


def test_an_inverse_rule_votes_for_the_subject_of_a_fact() -> None:
    facts = [("Bob", "husband of", "Ann"), ("Ann", "husband of", "Eve"), ("Bob", "husband of", "Joan")]
    assert vote((Rule("spouse", "husband of", confidence=0.9, inverse=True),), facts).text == "Bob"
    assert vote((Rule("spouse", "husband of", confidence=0.9),), facts).text == "Eve"
