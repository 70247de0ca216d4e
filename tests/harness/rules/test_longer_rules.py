"""Rules with longer bodies: mined or read, stored, matched, put in words, and followed by rule_vote."""

from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag import Corpus, Passage, Rule, UserError
from lm_eval_rag.harness.documents.rule_files import read_rules
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.rules.bank import RuleBank

FAMILY = [("Ada", "child of", "Bo"), ("Bo", "lives in", "Vale"), ("Cy", "child of", "Di"), ("Di", "lives in", "Norn")]
KNOWN = [
    ("Cy", "raised in", "Norn"),
    ("Eve", "child of", "Fay"),
    ("Fay", "lives in", "Ree"),
    ("Eve", "raised in", "Ree"),
]
PATH = ("child of", "lives in")
RULE = Rule("raised in", "child of / lives in", 2, 3, 2 / 3, path=PATH)


def passages(facts: list[Any]) -> list[Passage]:
    return [
        Passage(f"d{i}", " ".join(fact[:3]), fact=fact[:3], time=fact[3] if len(fact) > 3 else None)
        for i, fact in enumerate(facts)
    ]


def documents(facts: list[Any]) -> list[dict[str, str]]:
    return [dict(zip(("subject", "relation", "object", "time"), fact, strict=False)) for fact in facts]


def vote(facts: list[Any], rule: Rule, question: str) -> Any:
    from lm_eval_rag.methods.rule_vote import rule_vote

    ((answer, _),) = run(rule_vote, [question], corpus=documents(facts), rules=[rule])
    return answer


def test_mining_finds_the_rule_that_length_1_cannot() -> None:
    mined = read_rules(documents(FAMILY + KNOWN), min_support=2, rule_length=2)
    assert RULE in mined and all(rule.path for rule in mined)
    with pytest.raises(UserError, match="hold no rule"):
        read_rules(documents(FAMILY + KNOWN), min_support=2)


def test_rules_of_three_relations_come_after_those_of_two() -> None:
    facts = [(f"p{i}", "child of", f"q{i}") for i in range(4)] + [(f"q{i}", "lives in", f"t{i}") for i in range(4)]
    facts += [(f"t{i}", "lies in", f"c{i}") for i in range(4)] + [(f"p{i}", "citizen of", f"c{i}") for i in range(3)]
    mined = read_rules(documents(facts), rule_length=3)
    assert [len(rule.path) for rule in mined] == sorted(len(rule.path) for rule in mined)
    path = ("child of", "lives in", "lies in")
    assert Rule("citizen of", " / ".join(path), 3, 4, 0.75, path=path) in mined


@pytest.mark.parametrize("length", [0, 9, "2"])
def test_a_length_that_is_not_mined_is_refused(length: Any) -> None:
    with pytest.raises(UserError, match=r"rule_length=.* is not allowed: give a whole number from 1"):
        read_rules(documents(KNOWN), rule_length=length)


def test_rules_in_words() -> None:
    assert RULE.text == (
        "[Entity1, child of, Entity2] and [Entity2, lives in, Entity3] lead to [Entity1, raised in, Entity3]"
    )
    turned = Rule("sibling", "child of / ^child of", path=("child of", "^child of"))
    assert turned.text == (
        "[Entity1, child of, Entity2] and [Entity3, child of, Entity2] lead to [Entity1, sibling, Entity3]"
    )
    assert turned.relations == ("child of", "child of") and Rule("a", "b").relations == ("b",)


def test_a_rule_without_a_path_is_written_as_ever() -> None:
    """Hashes of corpora and keys of journals are of this text."""
    assert repr(Rule("a", "b", 1, 2, 0.5)) == (
        "Rule(head='a', body='b', support=1, body_support=2, confidence=0.5, repeat=False, inverse=False)"
    )


def test_a_saved_corpus_keeps_paths_and_directions(tmp_path: Path) -> None:
    rules = (Rule("a", "b"), RULE, Rule("a", "b", inverse=True))
    saved = Corpus.open(Corpus.of(passages(FAMILY), rules).save(tmp_path / "saved"))
    assert saved.rules() == rules
    assert {"raised in", "child of", "lives in"} <= set(saved.relations)
    assert not any("/" in name for name in saved.relations)


@pytest.mark.parametrize("path", [["child of", "lives in"], '["child of", "lives in"]'])
def test_rules_of_a_file(path: Any) -> None:
    row = {"head": "raised in", "path": path, "support": 2, "body_support": 3, "confidence": 2 / 3}
    assert read_rules([row]) == (RULE,)


@pytest.mark.parametrize("path", [["child of"], "child of", [1, 2], {"a": 1, "b": 2}.items()])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(UserError, match="no list of two relations or more"):
        read_rules([{"head": "raised in", "path": path}])


def test_controls_exchange_rules_of_length_1_only() -> None:
    bank = RuleBank(Corpus.of(passages(FAMILY + KNOWN), (RULE, Rule("raised in", "lives in", 1, 2, 0.1))))
    text = "what does Ada raised in ?"
    assert [rule.path for rule in bank.match(text, 5)] == [PATH, ()]
    assert [rule.body for rule in bank.match(text, 5, control="oracle", gold=["Vale"])] == []
    assert all(not rule.path for rule in bank.match(text, 5, control="matched"))


def test_a_vote_follows_the_path() -> None:
    answer = vote(FAMILY + KNOWN, RULE, "what does Ada raised in ?")
    assert (answer.text, answer.confidence, answer.rules) == ("Vale", 1.0, (RULE,))
    assert {("Ada", "child of", "Bo"), ("Bo", "lives in", "Vale")} <= {passage.fact for passage in answer.passages}


def test_a_vote_follows_inverse_steps() -> None:
    rule = Rule("cousin town of", "^child of / lives in", 1, 1, 1.0, path=("^child of", "lives in"))
    answer = vote([("Ada", "child of", "Bo"), ("Ada", "lives in", "Vale")], rule, "what does Bo cousin town of ?")
    assert answer.text == "Vale"
    assert vote(FAMILY, rule, "what does Ada cousin town of ?").abstained


def test_dates_do_not_decrease_along_a_path() -> None:
    rule = Rule("meet", "call / visit", 1, 1, 1.0, path=("call", "visit"))
    facts = [
        ("Ada", "call", "Bo", "2014-02-02"),
        ("Bo", "visit", "Cy", "2014-01-01"),
        ("Bo", "visit", "Di", "2014-02-02"),
    ]
    assert vote(facts, rule, "what does Ada meet ?").text == "Di"
    assert vote(facts[:2], rule, "what does Ada meet ?").abstained
