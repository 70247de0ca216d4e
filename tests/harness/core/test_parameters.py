"""Model arguments: unknown names and wrong values are refused with the nearest allowed."""

import inspect
import math
from dataclasses import dataclass
from typing import Literal

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.parameters import (
    AtLeastOne,
    Depth,
    Natural,
    NonNegative,
    Positive,
    Seconds,
    Share,
    bind,
    check,
    defaults,
)
from lm_eval_rag.harness.retrieval import RETRIEVERS


def method(
    query, *, k: Positive = 10, shots: Natural = 0, mode: Literal["a", "b"] = "a", rate: float = 0.5, on: bool = True,
    file: str | None = None
):  # fmt: skip
    return query, k, shots, mode, rate, on, file


def test_defaults_and_binding():
    assert defaults(method) == {"k": 10, "shots": 0, "mode": "a", "rate": 0.5, "on": True, "file": None}
    assert bind(method, {"k": 3, "rate": 1, "file": "x", "on": False})("q") == ("q", 3, 0, "a", 1, False, "x")
    assert bind(method, {"file": None})("q")[-1] is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kk": 10}, r"Unknown argument 'kk'\. Did you mean 'k'\?.*generator"),
        ({"k": 0}, "k=0 is not allowed: give a whole number of 1 or more"),
        ({"k": "many"}, "k='many' is not allowed"),
        ({"k": True}, "k=True"),
        ({"shots": -1}, "of 0 or more"),
        ({"mode": "c"}, r"Unknown value of mode 'c'.*Allowed: a, b"),
        ({"rate": "fast"}, "give a number"),
        ({"on": 1}, "give True or False"),
        ({"file": 3}, "give a text or None"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises(UserError, match=message) as raised:
        bind(method, given, ("generator",))
    assert "\n" not in str(raised.value)


@dataclass(frozen=True)
class Manner:
    """A value that no command line can give, but a program can."""

    loud: bool = False


class Plain:
    """Another, that pydantic knows nothing of."""


@pytest.mark.parametrize(
    ("hint", "right", "wrong", "message"),
    [
        (Positive, [1, 10**30], [0, 1.5, True, "1", None], "x={!r} is not allowed: give a whole number of 1 or more."),
        (int, [-3], [1.5, False, "1"], "x={!r} is not allowed: give a whole number."),
        (
            Share,
            [0, 0.5, 1],
            [-0.1, 2, True, "0.5"],
            "x={!r} is not allowed: give a number of 0 or more and of 1 or less.",
        ),
        (AtLeastOne, [1, 1.5, 10**9], [0.999, -1], "x={!r} is not allowed: give a number of 1 or more."),
        (NonNegative, [0, 0.0, 2], [-1e-9], "x={!r} is not allowed: give a number of 0 or more."),
        (
            NonNegative,
            [],
            [math.nan, math.inf],
            "x={!r} is not allowed: give a number of 0 or more. It must be finite.",
        ),
        (Seconds, [1e-9, 300], [0, -1.5], "x={!r} is not allowed: give a number above 0."),
        (
            float | None,
            [None, -1],
            [math.nan, -math.inf],
            "x={!r} is not allowed: give a number or None. It must be finite.",
        ),
        (int, [], [math.nan], "x={!r} is not allowed: give a whole number. It must be finite."),
        (int | str, [1, "a"], [1.5, None, True], "x={!r} is not allowed: give a whole number or a text."),
        (bool | None, [True, None], [0, "yes"], "x={!r} is not allowed: give True or False or None."),
        (Literal["off", "on"] | None, ["off", None], [True], "Unknown value of x '{!r}'. Allowed: off, on."),
        (Literal["off"] | int, ["off", 3], ["of"], "x={!r} is not allowed: give one of off or a whole number."),
        (tuple[str, ...], [("a", "b"), ()], ["ab", (1,)], "x={!r} is not allowed: give tuple[str, ...]."),
        (Manner, [Manner()], ["loud"], "x={!r} is not allowed: give Manner."),
        (Plain, [], ["plain"], "x={!r} is not allowed: give Plain."),
    ],
)
def test_what_an_annotation_allows(hint, right, wrong, message):
    for value in right:
        check("x", value, hint)
    for value in wrong:
        with pytest.raises(UserError) as raised:
            check("x", value, hint)
        assert str(raised.value) == message.format(value)


def test_a_ranking_has_a_depth_that_fits_into_memory():
    check("k", 10_000, Depth)
    with pytest.raises(UserError, match=r"k=1000000000 is not allowed: .*10000 or less\.$"):
        check("k", 1_000_000_000, Depth)
    with pytest.raises(UserError, match=r"k=100\.0 is not allowed: .*10000 or less\. Write 100 with digits alone\."):
        check("k", 1e2, Depth)


def test_nothing_is_converted():
    assert bind(method, {"rate": 1})("q")[4] is 1  # noqa: F632 - the very number that was given


def test_an_old_name_says_the_new_one():
    def renamed(query, *, prompt_file: str | None = None):
        yield from ()

    with pytest.raises(UserError, match=r"wording= is now named prompt_file=\. Write prompt_file="):
        bind(renamed, {"wording": "mine.toml"})
    with pytest.raises(UserError, match="Unknown argument 'wording'"):
        bind(method, {"wording": "mine.toml"})


@pytest.mark.parametrize("name", RETRIEVERS)
def test_every_default_of_a_retriever_is_what_its_annotation_allows(name):
    hints = inspect.get_annotations(RETRIEVERS[name], eval_str=True)
    for parameter, value in defaults(RETRIEVERS[name]).items():
        check(parameter, value, hints[parameter])
