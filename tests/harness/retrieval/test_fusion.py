"""Merging ranked lists, and the query variants of the equal-calls control."""

from __future__ import annotations

import random

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.retrieval.fusion import rank_sums, reciprocal_rank, round_robin
from lm_eval_rag.harness.rules.variants import VARIANTS, variants


def ranked(ids: str) -> list[Passage]:
    return [Passage(id, f"text of {id}", score=float(-place)) for place, id in enumerate(ids)]


def ids(passages: tuple[Passage, ...]) -> str:
    return "".join(passage.id for passage in passages)


def test_round_robin_takes_one_of_each_in_turn() -> None:
    assert ids(round_robin([ranked("abc"), ranked("dbe"), ranked("f")])) == "adfbce"
    assert ids(round_robin([[], ranked("ab")])) == "ab"
    assert round_robin([]) == ()
    one = round_robin([ranked("ab"), [Passage("a", "again", 9.0)]])
    assert one[0] == ranked("a")[0]


@pytest.mark.parametrize("seed", range(5))
def test_round_robin_is_the_union_and_fair(seed: int) -> None:
    rng = random.Random(seed)
    lists = [ranked("".join(rng.sample("abcdefghijkl", rng.randint(0, 8)))) for _ in range(rng.randint(1, 4))]
    merged = ids(round_robin(lists))
    assert sorted(merged) == sorted({passage.id for one in lists for passage in one})
    place = {
        id: min(([p.id for p in one].index(id), i) for i, one in enumerate(lists) if id in ids(tuple(one)))
        for id in merged
    }
    assert list(merged) == sorted(merged, key=place.__getitem__)


@pytest.mark.parametrize("seed", range(5))
def test_reciprocal_rank_restated(seed: int) -> None:
    """Cormack et al. 2009, section 2: the sum over rankings of 1 / (60 + rank), ranks from 1."""
    rng = random.Random(seed)
    lists = [ranked("".join(rng.sample("abcdefgh", rng.randint(0, 8)))) for _ in range(3)]
    score = {
        id: sum(1 / (60 + ids(tuple(one)).index(id) + 1) for one in lists if id in ids(tuple(one))) for id in "abcdefgh"
    }
    expected = sorted((id for id in score if score[id]), key=lambda id: (-score[id], id))
    fused = reciprocal_rank(lists)
    assert ids(fused) == "".join(expected)
    assert [passage.score for passage in fused] == pytest.approx([score[id] for id in expected])


def test_reciprocal_rank_breaks_ties_by_id_and_counts_a_repeat_once() -> None:
    assert ids(reciprocal_rank([ranked("b"), ranked("a")])) == "ab"
    assert reciprocal_rank([ranked("aab")])[1].score == pytest.approx(1 / 62)
    assert ids(reciprocal_rank([ranked("ab"), ranked("ca"), ranked("cb")], constant=0)) == "cab"
    with pytest.raises(UserError, match="constant=-1"):
        reciprocal_rank([], constant=-1)
    assert rank_sums([[7, 5], [5]]) == [(5, pytest.approx(1 / 62 + 1 / 61)), (7, pytest.approx(1 / 61))]


def test_variants_of_a_question() -> None:
    text = "Time 2014-05-03 what does Ann Lee visit again ?"
    assert variants(text, 1) == (text,)
    assert variants(text, 6) == (
        text,
        f"{text} Ann Lee",
        f"{text} visit again",
        "Ann Lee",
        "visit again",
        "Ann Lee visit again",
    )
    assert variants("who leads it", 4)[3] == "who leads"
    assert variants("Ghana", 5) == ("Ghana", "Ghana Ghana", "Ghana", "Ghana", "Ghana")
    for n, message in ((0, "1 or more"), (len(VARIANTS) + 1, f"from 1 to {len(VARIANTS)}")):
        with pytest.raises(UserError, match=message):
            variants(text, n)
