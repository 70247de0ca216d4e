"""Splits hold out what they promise, on made-up graphs."""

import random

import polars as pl
import pytest

from lm_eval_rag.tasks.ruleqa import specs, split
from lm_eval_rag.tasks.ruleqa.draw import level, lots
from lm_eval_rag.tasks.ruleqa.queries import questions

COLUMNS = ["split", "subject", "relation", "object", "time"]


def temporal_facts() -> pl.DataFrame:
    lot, rows = random.Random(1), set()
    for time in range(60):
        part = "train" if time < 40 else "valid" if time < 50 else "test"
        rows |= {(part, lot.randrange(9), lot.choice("abc"), lot.randrange(9), f"{time:04}") for _ in range(30)}
    return pl.DataFrame(sorted(rows), schema=COLUMNS, orient="row")


def static_facts() -> pl.DataFrame:
    lot = random.Random(2)
    rows = {(lot.randrange(60), lot.choice("abcdef"), min(int(lot.expovariate(0.1)), 40)) for _ in range(2500)}
    frame = pl.DataFrame(sorted(rows), schema=COLUMNS[1:4], orient="row")
    return frame.with_columns(split=pl.lit("train"), time=pl.lit(None, pl.String)).select(COLUMNS)


def keys(facts: pl.DataFrame, *columns: str) -> set[tuple[object, ...]]:
    return set(facts.select(columns).rows())


@pytest.mark.parametrize("corpus", ["train", "train_valid"])
def test_temporal_split_is_the_official_one(corpus: specs.CorpusChoice) -> None:
    facts = temporal_facts()
    parts = split.temporal(facts, corpus=corpus)
    wanted = ["train"] if corpus == "train" else ["train", "valid"]
    assert parts.documents.equals(facts.filter(pl.col("split").is_in(wanted)))
    assert parts.test.equals(facts.filter(pl.col("split") == "test"))
    halves = pl.concat([parts.retriever, parts.generator])
    assert keys(halves, *COLUMNS) == keys(facts.filter(pl.col("split") == "valid"), *COLUMNS)
    first, second = (keys(part, "subject", "relation", "time") for part in (parts.retriever, parts.generator))
    assert not first & second
    assert abs(len(first) - len(second)) <= 1


def test_static_split_holds_out_whole_groups() -> None:
    facts = static_facts()
    parts = split.static(facts, share=0.3, most=5)
    groups = [
        keys(part, "subject", "relation") for part in (parts.documents, parts.retriever, parts.generator, parts.test)
    ]
    assert sum(map(len, groups)) == len(set().union(*groups)) == len(keys(facts, "subject", "relation"))
    everything = pl.concat([parts.documents, parts.retriever, parts.generator, parts.test])
    assert keys(everything, *COLUMNS[1:4]) == keys(facts, *COLUMNS[1:4])
    sizes = [len(group) for group in groups[1:]]
    assert max(sizes) - min(sizes) <= 1


def test_static_split_takes_the_share_of_the_eligible_groups() -> None:
    facts = static_facts()
    triples = keys(facts, "subject", "relation", "object")
    eligible = set()
    for subject, relation in keys(facts, "subject", "relation"):
        objects = {o for s, r, o in triples if (s, r) == (subject, relation)}
        linked = any((subject, other, o) in triples for o in objects for other in "abcdef" if other != relation)
        if len(objects) <= 3 and linked:
            eligible.add((subject, relation))
    parts = split.static(facts, share=0.5, most=3)
    held = keys(pl.concat([parts.retriever, parts.generator, parts.test]), "subject", "relation")
    assert held <= eligible
    assert len(held) == round(0.5 * len(eligible)) > 20


def test_seeds() -> None:
    facts = static_facts()
    test = [questions(split.static(facts, seed=seed).test) for seed in (0, 0, 1)]
    assert test[0].equals(test[1])
    assert not test[0].equals(test[2])


def test_lots_depend_on_the_row_and_the_stage_alone() -> None:
    facts = static_facts().select("subject", "relation", "object")
    drawn = facts.with_columns(lots(facts, facts.columns, seed=0, stage="a"))
    turned = facts.reverse().with_columns(lots(facts.reverse(), facts.columns, seed=0, stage="a"))
    assert drawn.sort("subject", "relation", "object").equals(turned.sort("subject", "relation", "object"))
    assert drawn["lot"].n_unique() == facts.height
    assert not lots(facts, facts.columns, seed=0, stage="b").equals(drawn["lot"])


@pytest.mark.parametrize(
    ("supply", "wanted", "filled", "taken"),
    [
        ([9, 9, 9], 7, None, [3, 2, 2]),
        ([1, 9, 9], 9, None, [1, 4, 4]),
        ([1, 2, 3], 99, None, [1, 2, 3]),
        ([9, 9, 9], 6, [4, 0, 1], [0, 4, 2]),
        ([0, 0, 0], 3, None, [0, 0, 0]),
    ],
)
def test_level(supply: list[int], wanted: int, filled: list[int] | None, taken: list[int]) -> None:
    assert level(supply, wanted, filled) == taken
