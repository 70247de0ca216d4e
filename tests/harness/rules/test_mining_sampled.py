"""Rules of length 3: exact where a body is counted whole, within the interval at the stated rate if it is sampled."""

import random
from collections import Counter, defaultdict
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.rules.mining_sampled import mine_length3

RELATIONS = "ab"
Truth = dict[tuple[str, ...], tuple[int, int, float, float | None]]


def graph(seed: int, facts: int = 45) -> list[tuple[str, str, str, str]]:
    lot = random.Random(seed)
    entities = [f"e{number}" for number in range(8)]
    return [
        (lot.choice(entities), lot.choice(RELATIONS), lot.choice(entities), f"{lot.randrange(6)}") for _ in range(facts)
    ]


def frame(facts: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(facts, schema=["subject", "relation", "object", "time"], orient="row")


def walks(facts: list[Any]) -> list[tuple[Any, ...]]:
    """(x, y, time of the last step, path, number of different entities) of all ordered walks of three edges."""
    leaving = defaultdict(list)
    for s, r, o, t in {*facts, *((o, "^" + r, s, t) for s, r, o, t in facts)}:
        leaving[s].append((r, o, t))
    return [
        (x, y, t3, (r1, r2, r3), len({x, z, w, y}))
        for x in sorted(leaving)
        for r1, z, t1 in leaving[x]
        for r2, w, t2 in leaving[z]
        if t1 <= t2
        for r3, y, t3 in leaving[w]
        if t2 <= t3
    ]


def temporal_truth(facts: list[Any]) -> Truth:
    body, support = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    last: dict[tuple[str, ...], str] = {}
    for s, r, o, t in facts:
        last[s, r, o] = max(t, last.get((s, r, o), ""))
    for x, y, time, path, _ in walks(facts):
        body[path] += 1
        for head in RELATIONS:
            support[head, *path] += last.get((x, head, y), "") > time
    return {rule: (n, body[rule[1:]], n / body[rule[1:]], None) for rule, n in support.items()}


def static_truth(facts: list[Any]) -> Truth:
    links = {fact[:3] for fact in facts}
    pairs = defaultdict(set)
    for x, y, _, path, different in walks([(*fact, "0") for fact in links]):
        if different == 4:
            pairs[path].add((x, y))
    truth: Truth = {}
    for path, of in pairs.items():
        for head in RELATIONS:
            support = sum((x, head, y) in links for x, y in of)
            known = sum(any(x == s and r == head for s, r, _ in links) for x, _ in of)
            truth[head, *path] = (support, len(of), support / len(of), support / known if known else None)
    return truth


TRUTHS = {True: temporal_truth, False: static_truth}


@pytest.mark.parametrize("temporal", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_bodies_that_are_counted_whole_are_exact(seed: int, temporal: bool) -> None:
    facts = graph(seed)
    truth = TRUTHS[temporal](facts)
    mined = mine_length3(frame(facts), temporal=temporal, walks=100_000, samples=1_000_000, seed=seed)
    rows = {(row["head"], *row["path"]): row for row in mined.iter_rows(named=True)}
    names = ("support", "body_support", "confidence", "pca_confidence")
    assert {rule: tuple(row[name] for name in names) for rule, row in rows.items()} == {
        rule: pytest.approx(truth[rule]) for rule in rows
    }
    assert all(row["low"] == row["confidence"] == row["high"] for row in rows.values())
    assert rows.keys() >= {rule for rule, (support, *_) in truth.items() if support >= 2}  # all walks were drawn


@pytest.mark.parametrize("temporal", [True, False])
def test_95_of_100_intervals_hold_the_confidence(temporal: bool) -> None:
    facts = graph(3, 90 if not temporal else 60)
    truth, within = TRUTHS[temporal](facts), []
    for seed in range(5):
        mined = mine_length3(frame(facts), temporal=temporal, walks=20_000, samples=60, min_support=0, seed=seed)
        for row in mined.filter(pl.col("low") < pl.col("high")).iter_rows(named=True):
            _, body, confidence, _ = truth[row["head"], *row["path"]]
            within.append(row["low"] <= confidence <= row["high"])
            assert not temporal or row["body_support"] == body
    assert len(within) > 200
    assert 0.93 <= sum(within) / len(within) <= 0.99


def test_pairs_are_sampled_uniformly_however_many_paths_join_them() -> None:
    """Of two pairs one is joined by 99 paths and has the head, the other by one and has not: the confidence is 1/2."""
    many = [("x", "a", f"m{i}") for i in range(99)] + [(f"m{i}", "b", f"n{i}") for i in range(99)]
    many += [(f"n{i}", "c", "y") for i in range(99)] + [("x", "h", "y")]
    facts = [*many, ("u", "a", "v"), ("v", "b", "w"), ("w", "c", "z")]
    table = pl.DataFrame(facts, schema=["subject", "relation", "object"], orient="row")
    row = mine_length3(table, temporal=False, walks=50_000, samples=90, min_support=0, per_head=1000).filter(
        pl.col("path") == pl.Series([["a", "b", "c"]]), pl.col("head") == "h"
    )
    assert row["sampled"].item() < 20 and row["low"].item() < 0.5 < row["high"].item()


def test_a_seed_gives_the_same_rules_and_another_one_others() -> None:
    facts = frame(graph(4))
    first, again, other = (
        mine_length3(table, temporal=True, walks=5_000, samples=30, seed=seed)
        for table, seed in ((facts, 0), (facts.reverse(), 0), (facts, 1))
    )
    assert first.equals(again) and not first.equals(other)


def test_candidates_are_limited_for_each_head() -> None:
    mined = mine_length3(frame(graph(5)), temporal=True, walks=5_000, samples=30, per_head=3, min_support=0)
    assert mined.group_by("head").len()["len"].to_list() == [3, 3]


@pytest.mark.parametrize("temporal", [True, False])
@pytest.mark.parametrize("facts", [[], [("x", "a", "y", "1")]])
def test_too_few_facts_give_no_rules(temporal: bool, facts: list[Any]) -> None:
    schema = dict.fromkeys(("subject", "relation", "object", "time"), pl.String)
    mined = mine_length3(pl.DataFrame(facts, schema=schema, orient="row"), temporal=temporal)
    assert mined.height == 0
    assert mined.columns == [
        *("head", "path", "support", "body_support", "confidence", "low", "high", "pca_confidence", "sampled")
    ]
