"""Slices, popularity and the draw of Q, against their definitions by plain loops."""

import random
from collections import Counter

import polars as pl
import pytest

from lm_eval_rag.tasks.ruleqa import queries

RELATIONS = "abcdef"


@pytest.fixture(scope="module")
def world() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Documents, held-out facts and a bank, all made up; half of the facts without time."""
    lot = random.Random(3)

    def facts(n: int, times: range) -> pl.DataFrame:
        rows = {
            (
                lot.randrange(30),
                lot.choice(RELATIONS),
                min(int(lot.expovariate(0.08)), 29),
                lot.choice([None, f"{t:04}"]),
            )
            for t in times
            for _ in range(n)
        }
        schema = {"subject": pl.Int64, "relation": pl.String, "object": pl.Int64, "time": pl.String}
        return pl.DataFrame(sorted(rows, key=str), schema=schema, orient="row")

    pairs = [(head, body) for head in "abcd" for body in RELATIONS if lot.random() < 0.8]
    lot.shuffle(pairs)
    return facts(20, range(40)), facts(15, range(40, 60)), pl.DataFrame(pairs, schema=["head", "body"], orient="row")


def test_questions_gather_all_objects(world: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]) -> None:
    facts = world[1]
    expected: dict[tuple[object, ...], set[int]] = {}
    for subject, relation, gold, time in facts.iter_rows():
        expected.setdefault((subject, relation, time), set()).add(gold)
    asked = queries.questions(facts)
    found = {row[:3]: row[3] for row in asked.select("subject", "relation", "time", "answers").iter_rows()}
    assert found == {key: sorted(objects) for key, objects in expected.items()}
    assert asked.height == len(expected)


def test_slices(world: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]) -> None:
    documents, facts, bank = world
    sparse = documents.sample(150, seed=0)
    stated = {row[:3] for row in sparse.select("subject", "relation", "object").iter_rows()}
    found = Counter()
    for row in queries.with_slices(queries.questions(facts), sparse, bank).iter_rows(named=True):
        bodies = [body for head, body in bank.iter_rows() if head == row["relation"] != body][:3]
        direct = any((row["subject"], row["relation"], gold) in stated for gold in row["answers"])
        through = any((row["subject"], body, gold) in stated for gold in row["answers"] for body in bodies)
        assert row["slice"] == ("direct" if direct else "rule_required" if through else "unreachable")
        found[row["slice"]] += 1
    assert min(found[name] for name in queries.SLICES) > 10


def test_popularity(world: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]) -> None:
    documents, facts, _ = world
    mentions = Counter([*documents["subject"], *documents["object"]])
    total, before, tertile = sum(mentions.values()), 0, {}
    for entity, count in sorted(mentions.items(), key=lambda item: (-item[1], item[0])):
        tertile[entity] = 3 * before // total
        before += count
    for row in queries.with_popularity(queries.questions(facts), documents).iter_rows(named=True):
        best = min(tertile.get(gold, 2) for gold in row["answers"])
        assert row["popularity"] == queries.POPULARITY[best]


def test_an_answer_that_no_document_names_is_tail(world: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]) -> None:
    asked = pl.DataFrame({"subject": [0], "relation": ["a"], "time": ["0001"], "answers": [[999]]})
    assert queries.with_popularity(asked, world[0])["popularity"].to_list() == ["tail"]


def made_up(counts: dict[tuple[str, str], int]) -> pl.DataFrame:
    rows = [(part, level) for (part, level), n in counts.items() for _ in range(n)]
    frame = pl.DataFrame(rows, schema=["slice", "popularity"], orient="row")
    return frame.with_columns(subject=pl.int_range(pl.len()), relation=pl.lit("a"), time=pl.lit(None, pl.String))


def drawn_counts(frame: pl.DataFrame, n: int, column: str) -> Counter[str]:
    return Counter(queries.drawn(frame, n).filter("in_main")[column])


def test_a_third_needs_a_rule_where_supply_allows() -> None:
    frame = made_up({("direct", "head"): 800, ("rule_required", "tail"): 60, ("unreachable", "torso"): 100})
    assert drawn_counts(frame, 150, "slice")["rule_required"] == 50
    assert drawn_counts(frame, 300, "slice")["rule_required"] == 60


def test_a_natural_share_above_a_third_is_kept() -> None:
    frame = made_up({("direct", "head"): 200, ("rule_required", "head"): 800})
    assert drawn_counts(frame, 100, "slice") == {"rule_required": 80, "direct": 20}


def test_popularity_is_as_even_as_supply_allows() -> None:
    counts = {("direct", "head"): 500, ("direct", "torso"): 100, ("direct", "tail"): 30, ("rule_required", "head"): 400}
    assert drawn_counts(made_up(counts), 300, "popularity") == {"head": 170, "torso": 100, "tail": 30}
    even = {(part, level): 200 for part in queries.SLICES for level in queries.POPULARITY}
    assert drawn_counts(made_up(even), 300, "popularity") == {"head": 100, "torso": 100, "tail": 100}


@pytest.mark.parametrize("n", [0, 1, 7, 500])
def test_the_draw_has_the_wanted_size_and_loses_no_row(n: int) -> None:
    frame = made_up({(part, level): 9 for part in queries.SLICES for level in queries.POPULARITY})
    found = queries.drawn(frame, n)
    assert found["in_main"].sum() == min(n, frame.height)
    assert sorted(found["subject"]) == sorted(frame["subject"])
    assert found["subject"].to_list() != frame["subject"].to_list()  # shuffled, so that a first part is a fair sample
    assert found.equals(queries.drawn(frame.reverse().select(frame.columns), n))
    if n == 7:
        assert not found.equals(queries.drawn(frame, n, seed=1))
