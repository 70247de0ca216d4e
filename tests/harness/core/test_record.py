"""The record beside an answer: what counts as retrieved, and how deep its list goes."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.core.asks import rank, retrieve
from lm_eval_rag.harness.core.record import record
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.harness.plugin.engine import run

TEXTS = ["ships in the harbour", "a town", "ferries and ships"]


def ranks(query: Query, *, named: bool = True) -> Plan[Answer]:
    """Its passages are the two best texts, or it does not name them so."""
    found = yield from rank("ships", TEXTS, 2)
    return Answer("x", tuple(Passage(str(i), TEXTS[i], score=score) for i, score in found) if named else ())


def both(query: Query) -> Plan[Answer]:
    """Retrieves three and ranks two."""
    found = yield from retrieve("ships", 3)
    yield from rank("ships", TEXTS, 2)
    return Answer("x", found)


def cuts(query: Query) -> Plan[Answer]:
    """Retrieves three and names one of the two that came back."""
    return Answer("x", (yield from retrieve("ships", 3))[:1])


def neither(query: Query) -> Plan[Answer]:
    """Asks nothing."""
    return Answer("x")
    yield


@pytest.mark.parametrize(
    ("method", "options", "ids", "k"),
    [
        (ranks, {}, ["0", "2"], 2),
        (ranks, {"named": False}, None, 2),
        (both, {}, ["d0", "d2"], 3),
        (cuts, {}, ["d2"], 1),
        (neither, {}, None, 0),
    ],
)
def test_what_was_retrieved(method, options, ids, k):
    ((answer, trace),) = run(method, ["which?"], corpus=TEXTS, **options)
    told = record(answer, trace)
    assert told["k"] == k
    assert (None if told["passages"] is None else sorted(p["id"] for p in told["passages"])) == ids
