"""What a run's prompts have in common with earlier ones, against a comparison of all pairs."""

from __future__ import annotations

import random
import sys
from itertools import takewhile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from shared_prefixes import BLOCK, cached, common_length, in_turns, shared, shares


def plain(one: str, other: str) -> int:
    """Letter by letter."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@pytest.mark.parametrize("seed", range(5))
def test_the_longest_common_beginning_with_any_earlier_prompt(seed: int) -> None:
    draw = random.Random(seed)
    prompts = ["".join(draw.choices("ab", k=draw.randint(0, 12))) for _ in range(60)]
    for one in prompts[:9]:
        for other in prompts:
            assert common_length(one, other) == plain(one, other)
    pairs = [[plain(prompt, earlier) for earlier in prompts[:i]] for i, prompt in enumerate(prompts)]
    assert shared(prompts) == [max(row, default=0) for row in pairs]


def test_shares_by_run_and_by_question() -> None:
    asked = [("q1", "abcd"), ("q2", "abef"), ("q1", "abcdxy"), ("q2", "xyzw")]
    assert shares(asked) == (pytest.approx((2 + 4) / 18), pytest.approx(4 / 18))


def test_questions_take_turns_and_an_ended_one_is_replaced():
    questions = [["a1", "a2", "a3"], ["b1"], ["c1", "c2"]]
    assert in_turns(questions, 3) == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert in_turns(questions, 2) == ["a1", "b1", "a2", "c1", "a3", "c2"]
    assert in_turns(questions, 1) == ["a1", "a2", "a3", "b1", "c1", "c2"]


def test_a_cache_has_whole_blocks_and_forgets_the_one_used_longest_ago():
    a, b = "a" * 2 * BLOCK, "b" * 2 * BLOCK
    assert cached([a, a + "x"], 10 * BLOCK) == 2 * BLOCK / (4 * BLOCK + 1)
    assert cached([a, b, a, b], 4 * BLOCK) == 0.5 and cached([a, b, a, b], 3 * BLOCK) == 0
    assert cached([a, a, b, b], 2 * BLOCK) == 0.5 and cached(["a" * (BLOCK - 1)] * 2, 9 * BLOCK) == 0
