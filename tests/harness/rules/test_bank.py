"""The rule bank: recognition, selection, and the controls."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage, Rule
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.harness.rules.recognise import Recogniser, Recognition

RULES = (
    Rule("win", "enter", 40, 80, 0.5),
    Rule("win", "host", 4, 5, 0.8),
    Rule("win", "train for", 9, 18, 0.5),
    Rule("win", "watch", 9, 18, 0.5),
    Rule("win", "win", 10, 20, 0.5, repeat=True),
    Rule("lose", "enter", 30, 80, 0.375),
    Rule("lose", "skip", 5, 9, 0.55),
    Rule("host", "bid for", 6, 9, 0.66),
    Rule("host", "host", 6, 9, 0.66, repeat=True),
)
FACTS = [("Ann", "host", "Cup"), ("Ann", "enter", "Open"), ("Ann", "watch", "Cup"), ("Bob", "enter", "Cup")]
TEXT = "Time 2014-05-03 what does Ann win ?"


def bank() -> RuleBank:
    passages = [Passage(f"d{i}", f"{s} {r} {o}.", fact=(s, r, o)) for i, (s, r, o) in enumerate(FACTS)]
    return RuleBank(Corpus.of(passages, RULES))


def bodies(rules: tuple[Rule, ...]) -> list[str]:
    return [rule.body for rule in rules]


def test_rules_of_the_recognised_head_best_first_ties_by_body() -> None:
    assert bodies(bank().match(TEXT, 9)) == ["enter", "host", "train for", "watch"]
    assert bodies(bank().match(TEXT, 2)) == ["enter", "host"]
    assert bodies(bank().match(TEXT, 9, order="confidence")) == ["host", "enter", "train for", "watch"]
    assert bodies(bank().match(TEXT, 9, repeat=True)) == ["enter", "host", "win", "train for", "watch"]
    worth = [rule.confidence * math.sqrt(rule.support) for rule in bank().match(TEXT, 9, repeat=True)]
    assert worth == sorted(worth, reverse=True)


def test_a_query_without_rules_gets_none() -> None:
    for control in ("selected", "random", "shuffled", "permuted", "matched", "oracle"):
        for text in ("what does Ann enter ?", "what does Ann frobnicate ?", "", "zzz"):
            assert bank().match(text, 3, control=control, gold=["Cup"]) == ()  # type: ignore[arg-type]
    assert bank().match(TEXT, 0) == ()


def test_random_rules_are_as_many_and_of_another_head() -> None:
    for k in (1, 3):
        drawn = bank().match(TEXT, k, control="random")
        assert len(drawn) == k == len({(rule.head, rule.body) for rule in drawn})
        assert all(rule.head != "win" and not rule.repeat and rule in RULES for rule in drawn)
    assert any(rule.repeat for rule in bank().match(TEXT, 5, control="random", repeat=True))


def test_shuffled_rules_keep_the_head_and_have_no_body_of_it() -> None:
    selected, drawn = bank().match(TEXT, 2), bank().match(TEXT, 2, control="shuffled")
    assert [(rule.head, rule.confidence) for rule in drawn] == [("win", rule.confidence) for rule in selected]
    assert set(bodies(drawn)) <= {"skip", "bid for"} and len(set(bodies(drawn))) == 2
    assert len(bank().match(TEXT, 4, control="shuffled")) == 2  # there are no other bodies


FACTORY = [  # (subject, relation, number of documents); only Ann and Bob have the head
    *(("Ann", relation, n) for relation, n in (("win", 1), ("enter", 40), ("host", 4), ("skip", 38), ("rest", 5))),
    *(("Bob", relation, n) for relation, n in (("win", 1), ("bid for", 2), ("train for", 3), ("skip", 1))),
    *(("Cy", relation, n) for relation, n in (("host", 1), ("lose", 41), ("rare", 4))),
]


def factory() -> RuleBank:
    facts = [(s, r, f"{s}{r}{i}") for s, r, n in FACTORY for i in range(n)]
    passages = [Passage(f"d{i}", f"{s} {r} {o}.", fact=(s, r, o)) for i, (s, r, o) in enumerate(facts)]
    return RuleBank(Corpus.of(passages, (*RULES, Rule("lose", "rare", 5, 9, 0.5))))


def test_permuted_and_matched_rules_have_bodies_that_subjects_of_the_head_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Head, support and confidence stay. No winner has ``lose`` or ``rare``; bodies of the head's rules are out."""
    monkeypatch.setattr("lm_eval_rag.harness.rules.controls.NEAREST", 1)
    selected = factory().match(TEXT, 2)
    permuted, matched = (factory().match(TEXT, 2, control=name) for name in ("permuted", "matched"))  # type: ignore[arg-type]
    for drawn in (permuted, matched):
        assert [replace(rule, body="") for rule in drawn] == [replace(rule, body="") for rule in selected]
    assert bodies(selected) == ["enter", "host"]  # 40 and 5 documents, confidence 0.5 and 0.8
    assert bodies(permuted) == ["skip", "rest"]  # 39 and 5 documents
    assert bodies(matched) == ["skip", "bid for"]  # confidence 0.55 and 0.66; ``rest`` is in no rule
    assert len(factory().match(TEXT, 4, control="matched")) == 2


def test_a_permuted_rule_can_be_as_good_as_the_selected_one() -> None:
    """If the bank lacks the head's best body, a control may draw it; a claim that rules help then fails."""
    facts = [(f"P{i}", relation, f"O{i}") for i in range(9) for relation in ("win", "take", "touch")]
    passages = [Passage(f"d{i}", f"{s} {r} {o}.", fact=(s, r, o)) for i, (s, r, o) in enumerate(facts)]
    one = RuleBank(Corpus.of(passages, [Rule("win", "touch", 1, 9, 0.1), Rule("lose", "take", 9, 9, 1.0)]))
    assert bodies(one.match("what does P1 win ?", 1, control="permuted")) == ["take"]
    assert bodies(one.match("what does P1 win ?", 1, control="matched")) == ["take"]
    assert bodies(one.match("what does P1 win ?", 1, control="permuted", seed=5)) == ["take"]


def test_oracle_rules_are_those_whose_body_reaches_a_gold_answer() -> None:
    assert bodies(bank().match(TEXT, 9, control="oracle", gold=["Cup", "Nobody"])) == ["host", "watch"]
    assert bodies(bank().match(TEXT, 1, control="oracle", gold=["Cup"])) == ["host"]
    assert bank().match(TEXT, 9, control="oracle", gold=["Ann"]) == ()
    with pytest.raises(UserError, match="gold answers"):
        bank().match(TEXT, 1, control="oracle")


def test_controls_depend_on_seed_and_text_alone() -> None:
    texts = [f"Time 2014-05-{day:02} what does Ann win ?" for day in range(1, 29)]
    for control in ("random", "shuffled", "permuted", "matched"):
        one, other = (factory(), factory()) if control in ("permuted", "matched") else (bank(), bank())
        drawn = {text: one.match(text, 2, control=control) for text in texts}  # type: ignore[arg-type]
        random.Random(0).shuffle(texts)
        assert drawn == {text: other.match(text, 2, control=control) for text in texts}  # type: ignore[arg-type]
        assert len(set(drawn.values())) > 1
        assert any(drawn[text] != one.match(text, 2, control=control, seed=1) for text in texts)  # type: ignore[arg-type]
    # Pinned: another process, platform or version must draw the same.
    assert bodies(bank().match(TEXT, 3, control="random")) == ["enter", "skip", "bid for"]


def test_unknown_order_control_and_number() -> None:
    options: tuple[tuple[dict[str, Any], str], ...] = (
        ({"order": "confidense"}, "Did you mean 'confidence'"),
        ({"control": "shufled"}, "Did you mean 'shuffled'"),
        ({"k": -1}, "number of rules=-1"),
    )
    for given, message in options:
        with pytest.raises(UserError, match=message):
            bank().match(TEXT, **{"k": 1, **given})


KNOWN = Recogniser(
    entities=["Ann", "Ann Lee", "Police (India)", "the Guild of Bakers", "praise of folly"],
    relations=["visit", "make a visit", "make", "a visit", "praise", "is citizen of"],
    wordings={"paid court to": "praise", "visit": "praise"},
)


@pytest.mark.parametrize(
    ("text", "subject", "relation"),
    [
        ("Time 2014-05-03 what does Ann visit ?", "Ann", "visit"),  # a name counts before a wording
        ("what does Ann Lee make a visit ?", "Ann Lee", "make a visit"),  # the longest relation
        ("Time 1980 what does Police (India) paid court to ?", "Police (India)", "praise"),
        ("what does Nobody Known make a visit ?", "Nobody Known", "make a visit"),  # a stranger
        ("what does praise of folly praise ?", "praise of folly", "praise"),
        ("Whom did Ann Lee visit in 2014?", "Ann Lee", "visit"),
        ("which country granted citizenship to ann lee", "Ann Lee", "is citizen of"),  # first five letters
        ("Has the guild of bakers ever made visits?", "the Guild of Bakers", "visit"),  # no word to spare
        ("Did Ann praise Ann Lee?", "Ann Lee", "praise"),  # the longest entity
        ("Who praises folly?", None, "praise"),
        ("Ann?", "Ann", None),
        ("", None, None),
    ],
)
def test_recognition(text: str, subject: str | None, relation: str | None) -> None:
    assert KNOWN.recognise(text) == Recognition(subject, relation)


FORMS = {
    "visit": "Whom did {subject} visit on {time}?",
    "own": "What of {subject}?",
    "lead": "What of the bank of {subject}?",
}
WORDED = Recogniser(["Ann", "Ann Lee", "the bank of Ann"], ["visit", "own"], wordings={}, forms=FORMS)


@pytest.mark.parametrize(
    ("text", "subject", "relation"),
    [
        ("Whom did Ann visit on 3 May 2014?", "Ann", "visit"),
        ("Whom did Nobody Known visit on 2014?", "Nobody Known", "visit"),  # a stranger
        ("What of Ann?", "Ann", "own"),
        ("What of the bank of Ann Lee?", "Ann Lee", "lead"),  # the reading with a known entity
        ("What of the bank of Ann?", "Ann", "lead"),  # both are known: the shorter one
        ("What of the bank of Nobody?", "Nobody", "lead"),
        ("what does Ann visit ?", "Ann", "visit"),  # the benchmark's form is still known
        ("Whom did Ann visit on a day in May?", "Ann", "visit"),  # no form, so it is guessed from the words
    ],
)
def test_recognition_by_forms(text: str, subject: str, relation: str) -> None:
    assert WORDED.recognise(text) == Recognition(subject, relation)


def test_paraphrased_questions_of_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In one of seven the relation is worded as only documents word it."""
    import pyarrow.parquet as pq

    from lm_eval_rag.tasks.ruleqa_demo.build import build

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    corpus = open_corpus(build())
    rows = pq.read_table(tmp_path / corpus.id / "queries.parquet").to_pylist()
    assert sum(row["relation"] not in row["text"] for row in rows) > 10
    bank = RuleBank(corpus)
    known = [bank.recognise(row["text"]) == Recognition(row["subject"], row["relation"]) for row in rows]
    assert sum(known) >= 0.98 * len(rows)
