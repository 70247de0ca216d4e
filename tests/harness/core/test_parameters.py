"""Model arguments: unknown names and wrong values are refused with the nearest allowed."""

from typing import Literal

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.parameters import Natural, Positive, bind, defaults


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
        ({"file": 3}, "give a text"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises(UserError, match=message):
        bind(method, given, ("generator",))
