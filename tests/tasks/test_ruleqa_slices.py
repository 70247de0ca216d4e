"""The slices of the questions, against their definitions by plain loops."""

import random
from collections import Counter
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.tasks.ruleqa import queries, slices

RELATIONS = "abcdefg"
FACTS = {"subject": pl.Int64, "relation": pl.String, "object": pl.Int64, "time": pl.String}
PAIRS = pl.DataFrame({"relation": ["a", "b", "c"], "partner": ["a", "c", "b"]})


def facts(n: int, times: range, seed: int) -> pl.DataFrame:
    lot = random.Random(seed)
    rows = {(lot.randrange(40), lot.choice(RELATIONS), lot.randrange(40), f"{lot.choice(times):04}") for _ in range(n)}
    return pl.DataFrame(sorted(rows), schema=FACTS, orient="row")


def rules(seed: int) -> pl.DataFrame:
    lot = random.Random(seed)
    rows = [(h, b, lot.random() ** 2) for h in RELATIONS[:6] for b in RELATIONS[:6] if h != b and lot.random() < 0.4]
    return pl.DataFrame(rows, schema=["head", "body", "confidence"], orient="row")


DOCUMENTS, ASKED = facts(600, range(40), 1), queries.questions(facts(500, range(40, 60), 2))
BANK, INVERSE = rules(3), rules(4)
STATED = {(s, r, o) for s, r, o, _ in DOCUMENTS.iter_rows()}


def confidences(row: dict[str, Any]) -> list[float]:
    """Of all rules that lead from the question's subject to a gold answer."""
    subject, relation = row["subject"], row["relation"]
    forward = [c for o in row["answers"] for h, b, c in BANK.iter_rows() if h == relation and (subject, b, o) in STATED]
    back = [c for o in row["answers"] for h, b, c in INVERSE.iter_rows() if h == relation and (o, b, subject) in STATED]
    return forward + back


def support(row: dict[str, Any]) -> str:
    s, r, golds = row["subject"], row["relation"], row["answers"]
    partners = {r} | {partner for relation, partner in PAIRS.iter_rows() if relation == r}
    tests = {
        "direct": any((s, r, o) in STATED for o in golds),
        "reverse": any((o, p, s) in STATED for o in golds for p in partners),
        "rule_required": bool(confidences(row)),
        "other_link": any((s, x, o) in STATED or (o, x, s) in STATED for o in golds for x in RELATIONS),
    }
    return next((name for name, holds in tests.items() if holds), "nowhere")


def test_support_and_confidence() -> None:
    table = slices.with_support(ASKED, DOCUMENTS, BANK, INVERSE, PAIRS)
    assert table.select(ASKED.columns).equals(ASKED)
    counts = Counter(table["slice"])
    for row in table.iter_rows(named=True):
        assert row["slice"] == support(row)
        if row["slice"] == "rule_required":
            best = max(confidences(row))
            assert row["rule_confidence"] == slices.CONFIDENCE[0 if best < 0.1 else 1 if best <= 0.5 else 2]
        else:
            assert row["rule_confidence"] is None
    assert set(counts) == set(slices.SUPPORT) and min(counts.values()) > 5
    assert set(table["rule_confidence"].drop_nulls()) == set(slices.CONFIDENCE)


def test_subject_documents() -> None:
    sizes = Counter(DOCUMENTS["subject"])
    table = slices.with_subject_documents(ASKED, DOCUMENTS)
    assert table["subject_documents"].to_list() == [
        "more than 10" if sizes[subject] > 10 else "at most 10" for subject in ASKED["subject"]
    ]
    assert table["subject_documents"].n_unique() == 2


def test_change() -> None:
    last: dict[tuple[int, str], tuple[str, set[int]]] = {}
    for s, r, o, time in DOCUMENTS.iter_rows():
        before, objects = last.get((s, r), ("", set()))
        last[s, r] = max(before, time), ({o} if time > before else objects | {o} if time == before else objects)
    table = slices.with_change(ASKED, DOCUMENTS)
    for row in table.iter_rows(named=True):
        stable = set(row["answers"]) & last.get((row["subject"], row["relation"]), ("", set()))[1]
        assert row["change"] == ("stable" if stable else "changed")
    assert min(Counter(table["change"]).values()) > 5


@pytest.mark.parametrize("temporal", [True, False])
def test_seen(temporal: bool) -> None:
    training = facts(80, range(40, 50), 7)
    known = {(s, r, o) for s, r, o, _ in training.iter_rows()}
    pairs = {frozenset((s, o)) for s, _, o in known}
    table = slices.with_seen(ASKED, training, temporal=temporal)
    for row in table.iter_rows(named=True):
        s, r, golds = row["subject"], row["relation"], row["answers"]
        seen = any((s, r, o) in known if temporal else frozenset((s, o)) in pairs for o in golds)
        assert row["seen"] == ("seen" if seen else "unseen")
    assert table["seen"].n_unique() == 2
    empty = slices.with_seen(ASKED, training.clear(), temporal=temporal)
    assert set(empty["seen"]) == {"unseen"}


def test_one_question_of_each_subject_and_relation() -> None:
    kept = queries.one_each(ASKED)
    groups = [(s, r) for s, r in ASKED.select("subject", "relation").iter_rows()]
    assert Counter(kept.select("subject", "relation").rows()) == dict.fromkeys(groups, 1)
    assert len(groups) > kept.height and kept.equals(queries.one_each(ASKED))
    assert kept.join(ASKED, on=queries.KEY, how="semi").height == kept.height
    assert kept["time"].is_sorted() and not kept.equals(queries.one_each(ASKED, seed=1))
