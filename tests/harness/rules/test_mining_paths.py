"""Rules of length 2 equal their definitions, counted by nested loops over small random graphs."""

import random
from collections import Counter
from itertools import product
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.rules import mining_paths
from lm_eval_rag.harness.rules.mining_paths import mine_length2

RELATIONS = "abc"
STEPS = (*RELATIONS, *("^" + name for name in RELATIONS))
COLUMNS = ["head", "path", "support", "body_support", "confidence", "pca_confidence"]


def graph(seed: int, facts: int = 40) -> list[tuple[str, str, str, str]]:
    lot = random.Random(seed)
    entities = [f"e{number}" for number in range(7)]
    return [
        (lot.choice(entities), lot.choice(RELATIONS), lot.choice(entities), f"{lot.randrange(6):04}")
        for _ in range(facts)
    ]


def frame(facts: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(facts, schema=["subject", "relation", "object", "time"], orient="row")


def rows(rules: pl.DataFrame) -> dict[tuple[str, ...], list[Any]]:
    return {(row["head"], *row["path"]): [row[name] for name in COLUMNS[2:]] for row in rules.iter_rows(named=True)}


def edges(facts: list[Any]) -> set[tuple[Any, ...]]:
    return set(facts) | {(o, "^" + r, s, t) for s, r, o, t in facts}


def temporal_by_definition(facts: list[Any]) -> dict[tuple[str, ...], list[Any]]:
    support, body = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for (x, r1, z, t1), (middle, r2, y, t2) in product(edges(facts), repeat=2):
        if z == middle and t1 <= t2:
            body[r1, r2] += 1
            for head in RELATIONS:
                support[head, r1, r2] += any((x, head, y) == fact[:3] and fact[3] > t2 for fact in facts)
    return {rule: [n, body[rule[1:]], n / body[rule[1:]], None] for rule, n in support.items() if n}


def static_by_definition(facts: list[Any]) -> dict[tuple[str, ...], list[Any]]:
    links = {edge[:3] for edge in edges(facts)}
    pairs: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for (x, r1, z), (middle, r2, y) in product(links, repeat=2):
        if z == middle and len({x, z, y}) == 3:
            pairs.setdefault((r1, r2), set()).add((x, y))
    rules = {}
    for head, (body, held) in product(RELATIONS, pairs.items()):
        support = sum((x, head, y) in links for x, y in held)
        if support:
            known = sum(any(x == s and r == head for s, r, _ in links) for x, _ in held)
            rules[head, *body] = [support, len(held), support / len(held), support / known]
    return rules


DEFINITIONS = {True: temporal_by_definition, False: static_by_definition}


@pytest.mark.parametrize("temporal", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_rules_by_definition(seed: int, temporal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining_paths, "WALKS", (1 << 21, 3)[seed % 2])  # also in many parts
    facts = graph(seed)
    expected = DEFINITIONS[temporal](facts)
    assert len(expected) > 20
    assert rows(mine_length2(frame(facts), temporal=temporal)) == expected


@pytest.mark.parametrize("temporal", [True, False])
def test_blocks_of_relations_give_the_rules_of_one_call(temporal: bool) -> None:
    facts = frame(graph(5))
    whole = mine_length2(facts, temporal=temporal)
    blocks = [mine_length2(facts, temporal=temporal, first=codes) for codes in ([0, 3], [1, 2, 4], [5])]
    assert pl.concat(blocks).sort("head", "path").equals(whole)
    assert all(block.height for block in blocks)


@pytest.mark.parametrize("temporal", [True, False])
def test_rules_below_the_minimum_support_are_left_out(temporal: bool) -> None:
    facts = frame(graph(6))
    every = mine_length2(facts, temporal=temporal)
    kept = mine_length2(facts, temporal=temporal, min_support=3)
    assert kept.equals(every.filter(pl.col("support") >= 3))
    assert 0 < kept.height < every.height


def test_the_order_and_the_type_of_the_facts_do_not_matter() -> None:
    facts = frame([*graph(7), *graph(7)[:5]])
    numbers = facts.with_columns(pl.col("subject", "object").str.slice(1).cast(pl.Int64), pl.col("time").cast(pl.Int64))
    mined = mine_length2(facts, temporal=True)
    assert mined.equals(mine_length2(facts.reverse(), temporal=True))
    assert mined.equals(mine_length2(numbers, temporal=True))


@pytest.mark.parametrize("temporal", [True, False])
@pytest.mark.parametrize("facts", [[], [("x", "a", "y", "1")]])
def test_too_few_facts_give_no_rules_with_the_promised_types(temporal: bool, facts: list[Any]) -> None:
    table = pl.DataFrame(
        facts, schema=dict.fromkeys(("subject", "relation", "object", "time"), pl.String), orient="row"
    )
    mined = mine_length2(table, temporal=temporal)
    assert mined.height == 0
    assert dict(mined.schema) == {
        "head": pl.String, "path": pl.List(pl.String), "support": pl.Int64, "body_support": pl.Int64,
        "confidence": pl.Float64, "pca_confidence": pl.Float64,
    }  # fmt: skip
