"""What is held out has no echo in another part, on made-up graphs; against plain loops over sets."""

import random
from collections.abc import Iterable
from itertools import combinations

import polars as pl
import pytest

from lm_eval_rag.tasks.ruleqa import apart, split
from lm_eval_rag.tasks.ruleqa.partners import MIN_SHARE, MIN_TRIPLES, partners, reversed_facts
from lm_eval_rag.tasks.ruleqa.queries import questions

Triple = tuple[int, str, int]
SCHEMA = {"split": pl.String, "subject": pl.Int64, "relation": pl.String, "object": pl.Int64, "time": pl.String}


def triples(facts: pl.DataFrame) -> set[Triple]:
    return {(s, r, o) for s, r, o in facts.select("subject", "relation", "object").iter_rows()}


def pairs(facts: pl.DataFrame) -> set[frozenset[int]]:
    return {frozenset((s, o)) for s, _, o in triples(facts)}


def frame(rows: Iterable[tuple[str, int, str, int, str | None]]) -> pl.DataFrame:
    return pl.DataFrame(sorted(rows, key=str), schema=SCHEMA, orient="row")


def static_graph() -> pl.DataFrame:
    """Married is symmetric, owns and owned by are inverse, a to d are neither; some facts are self-loops."""
    lot, rows = random.Random(5), set()
    for _ in range(1500):
        s, o = lot.randrange(70), min(int(lot.expovariate(0.08)), 69)
        relation = lot.choice(["a", "b", "c", "d", "married", "owns"])
        rows.add((s, relation, o))
        mirrored = {"married": "married", "owns": "owned by"}.get(relation)
        if mirrored and lot.random() < 0.8:
            rows.add((o, mirrored, s))
    return frame(("train", *row, None) for row in rows)


def temporal_graph() -> pl.DataFrame:
    """200 facts that recur; those of meets reversed too."""
    lot, rows = random.Random(6), set()
    known = [(lot.randrange(60), lot.choice(["a", "b", "meets"]), lot.randrange(60)) for _ in range(200)]
    for time in range(60):
        part = "train" if time < 40 else "valid" if time < 50 else "test"
        for s, relation, o in lot.sample(known, 25):
            rows.add((part, s, relation, o, f"{time:04}"))
            if relation == "meets":
                rows.add((part, o, relation, s, f"{time:04}"))
    return frame(rows)


def expected_partners(facts: pl.DataFrame) -> dict[tuple[str, str], int]:
    known = {(s, r, o) for s, r, o in triples(facts) if s != o}
    names = sorted({r for _, r, _ in known})
    found = {}
    for first in names:
        for second in names:
            larger = max(sum(r == name for _, r, _ in known) for name in (first, second))
            turned = sum(r == first and (o, second, s) in known for s, r, o in known)
            if turned >= MIN_TRIPLES and turned >= MIN_SHARE * larger:
                found[first, second] = turned
    return found


@pytest.mark.parametrize("graph", [static_graph, temporal_graph])
def test_partners_by_counting(graph) -> None:  # type: ignore[no-untyped-def]
    facts = graph()
    table = partners(facts)
    found = {(row["relation"], row["partner"]): row["triples"] for row in table.iter_rows(named=True)}
    assert found == expected_partners(facts)
    assert set(found) == (
        {("married", "married"), ("owns", "owned by"), ("owned by", "owns")}
        if graph is static_graph
        else {("meets", "meets")}
    )
    assert table.filter(pl.col("share") < MIN_SHARE).is_empty()


def test_a_relation_with_few_triples_has_no_partner() -> None:
    rows = [("train", i, "married", i + 100, None) for i in range(MIN_TRIPLES // 2 - 1)]
    rows += [("train", o, r, s, None) for _, s, r, o, _ in rows]
    assert partners(frame(rows)).is_empty()
    rows += [("train", 50, "married", 51, None), ("train", 51, "married", 50, None)]
    assert partners(frame(rows)).height == 1


def test_static_parts_share_no_pair_and_nothing_held_out_is_stated_reversed() -> None:
    facts = static_graph()
    table = partners(facts)
    before = split.static(facts)
    after, counts = apart.static(apart.without_loops(before), table)
    held_out = [after.test, after.retriever, after.generator]
    for first, second in combinations(held_out, 2):
        assert not pairs(first) & pairs(second)
    assert pairs(before.test) & (pairs(before.retriever) | pairs(before.generator))  # there was something to do
    known = triples(after.documents)
    held, inverses = triples(pl.concat(held_out)), expected_partners(facts)
    turned = {(o, other, s) for s, r, o in held for head, other in inverses if r == head}
    assert not turned & known and turned & triples(before.documents)
    lost = triples(before.documents) - known
    assert known <= triples(before.documents) and all(s == o or (s, r, o) in turned for s, r, o in lost)
    assert after.test.equals(before.test.filter(pl.col("subject") != pl.col("object")))
    groups = [{(s, r) for s, r, _ in triples(part)} for part in held_out]
    for name, kept in (("retriever", groups[1]), ("generator", groups[2])):  # whole groups are dropped
        old = triples(getattr(before, name))
        assert {(s, r, o) for s, r, o in old if (s, r) in kept and s != o} == triples(getattr(after, name))
    assert list(counts.values())[-1] == len(triples(apart.without_loops(before).documents)) - len(known)
    assert sum(list(counts.values())[:3]) == sum(
        sum(s != o for s, _, o in triples(getattr(before, name))) - getattr(after, name).height
        for name in ("retriever", "generator")
    )
    assert min(part.height for part in held_out) > 20


def test_temporal_training_has_no_fact_of_a_question() -> None:
    facts = temporal_graph()
    table = partners(facts)
    before = apart.without_loops(split.temporal(facts))
    asked = before.test.sample(40, seed=1)
    after, counts = apart.temporal(before, asked, table)
    echoes = triples(asked) | {(o, r, s) for s, r, o in triples(asked) if r == "meets"}
    for name in ("retriever", "generator"):
        kept, old = triples(getattr(after, name)), triples(getattr(before, name))
        assert kept == old - echoes and old & echoes
    assert after.documents.equals(before.documents) and after.test.equals(before.test)
    assert sum(counts.values()) == sum(
        getattr(before, name).height - getattr(after, name).height for name in ("retriever", "generator")
    )


def test_reversed_facts() -> None:
    table = pl.DataFrame({"relation": ["married", "owns"], "partner": ["married", "owned by"]})
    facts = frame([("", 1, "married", 2, None), ("", 3, "owns", 4, None), ("", 5, "a", 6, None)])
    assert triples(reversed_facts(facts, table)) == {(2, "married", 1), (4, "owned by", 3)}


@pytest.mark.parametrize("graph", [static_graph, temporal_graph])
def test_no_training_fact_of_the_split_becomes_a_question(graph) -> None:  # type: ignore[no-untyped-def]
    """Checkpoints that were trained on the parts before they were taken apart must not know a question."""
    facts = graph()
    static = graph is static_graph
    before = split.static(facts) if static else split.temporal(facts)
    after = apart.without_loops(before)
    if static:
        after, _ = apart.static(after, partners(facts))
    key = ["subject", "relation", "time"]
    trained = set(questions(pl.concat([before.retriever, before.generator])).select(key).rows())
    asked = set(questions(after.test).select(key).rows())
    assert asked and not asked & trained
    assert asked <= set(questions(before.test).select(key).rows())
    for name in ("retriever", "generator"):
        assert triples(getattr(after, name)) <= triples(getattr(before, name))
