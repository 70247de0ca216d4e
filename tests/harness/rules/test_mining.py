"""Mined rules equal their definitions, counted by nested loops."""

import math
import random
from itertools import product
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.rules.mining import best_first, mine_static, mine_temporal

Fact = tuple[int, str, int, str]


def graph(seed: int, n: int = 300) -> list[Fact]:
    lot = random.Random(seed)
    return [(lot.randrange(6), lot.choice("abcde"), lot.randrange(6), f"{lot.randrange(8):04}") for _ in range(n)]


def frame(facts: list[Fact]) -> pl.DataFrame:
    return pl.DataFrame(facts, schema=["subject", "relation", "object", "time"], orient="row")


def rows(rules: pl.DataFrame) -> dict[tuple[str, str], tuple[int, int, float, float | None]]:
    return {(head, body): rest for head, body, *rest in map(tuple, rules.iter_rows())}  # type: ignore[misc]


def exchanged(fact: tuple[Any, ...], inverse: bool) -> tuple[Any, ...]:
    """A body fact with subject and object exchanged, if the rule is inverse."""
    return (fact[2], fact[1], fact[0], *fact[3:]) if inverse else fact


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_temporal_rules_by_definition(seed: int, inverse: bool) -> None:
    facts = graph(seed, 300 if seed else 60)
    expected = {}
    for head, body in product("abcde", repeat=2):
        bodies = {exchanged(fact, inverse) for fact in facts if fact[1] == body}
        followed = [(s, r, o, t) for s, r, o, t in bodies if any((s, head, o) == f[:3] and f[3] > t for f in facts)]
        if followed:
            expected[head, body] = [len(followed), len(bodies), len(followed) / len(bodies), None]
    assert rows(mine_temporal(frame(facts), inverse=inverse)) == expected


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_static_rules_by_definition(seed: int, inverse: bool) -> None:
    facts = [fact[:3] for fact in graph(seed, 300 if seed else 40)]
    pairs = {relation: {(s, o) for s, r, o in facts if r == relation} for relation in "abcde"}
    turned = {relation: {(o, s) if inverse else (s, o) for s, o in of} for relation, of in pairs.items()}
    expected = {}
    for head, body in product("abcde", repeat=2):
        support = len(pairs[head] & turned[body])
        if (inverse or head != body) and support:
            subjects = {s for s, _ in pairs[head]}
            known = sum(s in subjects for s, _ in turned[body])
            expected[head, body] = [support, len(turned[body]), support / len(turned[body]), support / known]
    table = pl.DataFrame(facts, schema=["subject", "relation", "object"], orient="row")
    found = mine_static(table, inverse=inverse)
    assert rows(found) == expected
    assert (found["pca_confidence"] >= found["confidence"]).all()


def test_a_head_at_the_same_time_or_before_does_not_follow() -> None:
    facts = [(0, "body", 1, "2014-01-02"), (0, "head", 1, "2014-01-02"), (0, "other", 1, "2014-01-01")]
    found = rows(mine_temporal(frame(facts)))
    assert set(found) == {("body", "other"), ("head", "other")}


def test_repeated_facts_count_once_and_directions_are_kept_apart() -> None:
    facts = [(0, "a", 1, "1"), (0, "a", 1, "1"), (1, "b", 0, "2"), (0, "b", 1, "3"), (2, "a", 3, "1")]
    assert rows(mine_temporal(frame(facts))) == {("b", "a"): [1, 2, 0.5, None]}


def test_times_need_only_an_order() -> None:
    facts = frame(graph(1))
    as_numbers = facts.with_columns(pl.col("time").cast(pl.Int64))
    assert mine_temporal(facts).equals(mine_temporal(as_numbers))


def test_the_order_of_the_facts_does_not_matter() -> None:
    facts = frame(graph(2))
    assert mine_temporal(facts).equals(mine_temporal(facts.reverse()))
    assert mine_static(facts).equals(mine_static(facts.reverse()))


def test_rank_is_by_confidence_times_root_support_then_names() -> None:
    ranked = best_first(mine_temporal(frame(graph(3)))).rows(named=True)
    keys = [(-row["confidence"] * math.sqrt(row["support"]), row["head"], row["body"]) for row in ranked]
    assert keys == sorted(keys)
    tied = pl.DataFrame(
        {"head": ["b", "a", "a", "z"], "body": ["a", "c", "b", "z"], "support": [4, 4, 1, 16]}
    ).with_columns(confidence=pl.Series([0.5, 0.5, 1.0, 0.25]))
    assert best_first(tied).select("head", "body").rows() == [("a", "b"), ("a", "c"), ("b", "a"), ("z", "z")]


@pytest.mark.parametrize("mine", [mine_temporal, mine_static])
def test_no_facts_no_rules(mine: object) -> None:
    empty = pl.DataFrame(schema={"subject": pl.Int64, "relation": pl.String, "object": pl.Int64, "time": pl.String})
    found = mine(empty)  # type: ignore[operator]
    assert found.height == 0
    assert found.columns == ["head", "body", "support", "body_support", "confidence", "pca_confidence"]


@pytest.mark.parametrize("mine", [mine_temporal, mine_static])
@pytest.mark.parametrize("n", [0, 200])
def test_columns_have_the_promised_types(mine: object, n: int) -> None:
    facts = frame(graph(4, n)) if n else frame(graph(4, 1)).clear()
    found = mine(facts)  # type: ignore[operator]
    text, whole, share = pl.String, pl.Int64, pl.Float64
    assert dict(found.schema) == {
        "head": text, "body": text, "support": whole, "body_support": whole, "confidence": share,
        "pca_confidence": share,
    }  # fmt: skip
    assert (found.height > 0) == (n > 0)
    assert found.select("head", "body").rows() == sorted(found.select("head", "body").rows())
