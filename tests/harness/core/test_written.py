"""A reply that knows how probable it was: the sum over the tokens that spell it, or the part that is asked for."""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from lm_eval_rag.harness.core.written import Written

TOKENS = [("\n", -0.5), ("Bo", -1.0), (" Reed", -2.0), (".", -4.0), (" He", -8.0), (" wrote", -16.0), ("\n\n", -32.0)]


def test_it_is_a_text_like_any_other() -> None:
    reply = Written("Bo Reed. He wrote", TOKENS, [("Bo", -1.0), ("Al", -2)])
    assert reply == "Bo Reed. He wrote" and reply.first == (("Bo", -1.0), ("Al", -2.0))
    assert json.dumps([reply]) == '["Bo Reed. He wrote"]' and type(reply.strip()) is str


@pytest.mark.parametrize(
    ("part", "log"),
    [(None, -31.5), ("Bo Reed. He wrote", -31.5), ("Bo Reed.", -7.5), ("Bo", -1.5), ("Bo  Reed\n.", -7.5),
     ("He", -15.5), ("wro", -31.5), ("", 0.0), (" \n", 0.0), ("not in it", -31.5)],
)  # fmt: skip
def test_the_log_probability_up_to_the_end_of_a_part(part: str | None, log: float) -> None:
    assert Written("Bo Reed. He wrote", TOKENS).log(part) == log


@pytest.mark.parametrize("seed", range(50))
def test_any_text_cut_into_any_tokens(seed: int) -> None:
    """Of tokens each with ln P = -1 a beginning has as many as reach its last character that is not blank."""
    rng = random.Random(seed)
    text = "".join(rng.choice("ab \n\u00a0é") for _ in range(rng.randint(1, 30)))
    cuts = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(8))})
    tokens = [(text[a:b], -1.0) for a, b in pairwise(cuts)]
    end = rng.randrange(len(text) + 1)
    needed = len(text[:end].rstrip())
    assert Written(text, tokens).log(text[:end]) == -sum(a < needed for a in cuts[:-1])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda reply: pickle.loads(pickle.dumps(reply))])
def test_a_copy_knows_it_too(copied: Callable[[Written], Written]) -> None:
    reply = copied(Written("Bo Reed.", TOKENS, [("Bo", -1.0)]))
    assert (reply, reply.log(), reply.first) == ("Bo Reed.", -7.5, (("Bo", -1.0),))


def test_a_token_of_unknown_probability() -> None:
    assert Written("a b", [("a", -5000.0), (" b", -5000.0)]).told
    assert not Written("a b", [("a", -1.0), (" b", -9999.0)]).told
