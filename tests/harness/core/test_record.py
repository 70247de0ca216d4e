"""The record beside an answer: what counts as retrieved, and how deep its list goes."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.core.asks import rank, retrieve
from lm_eval_rag.harness.core.record import (
    counts_of,
    deepest,
    depth,
    predicted,
    record,
    share_depth,
    share_predicted,
)
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, Step, Trace
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.retrieval.fusion import round_robin

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


def hops(query: Query) -> Plan[Answer]:
    """Asks twice for two, and finds three, since one was found by both."""
    first = yield from retrieve("ships", 2)
    second = yield from retrieve("a town with ships", 2)
    return Answer("x", round_robin([first, second]))


def cuts_hops(query: Query) -> Plan[Answer]:
    """Asks twice for two, and names two of the three."""
    return Answer("x", (yield from hops(query)).passages[:2])


def with_example(query: Query) -> Plan[Answer]:
    """Retrieves two for the question, and two for a worked example, which go into the prompt alone."""
    found = yield from retrieve("ferries", 2)
    yield from retrieve("town", 2)
    return Answer("x", found)


def twice(query: Query) -> Plan[Answer]:
    """Asks the same again, which brings nothing."""
    yield from retrieve("ships", 2)
    return Answer("x", (yield from retrieve("ships", 2)))


def abstains(query: Query) -> Plan[Answer]:
    """Names nothing of what it retrieved."""
    yield from retrieve("ships", 2)
    return Answer("", abstained=True)


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
        (hops, {}, ["d0", "d1", "d2"], 4),
        (cuts_hops, {}, ["d1", "d2"], 2),
        (with_example, {}, ["d2"], 2),
        (twice, {}, ["d0", "d2"], 2),
        (abstains, {}, [], 0),
        (neither, {}, None, 0),
    ],
)
def test_what_was_retrieved(method, options, ids, k):
    ((answer, trace),) = run(method, ["which?"], corpus=TEXTS, **options)
    entry = record(answer, trace)
    assert entry["k"] == k
    assert (None if entry["passages"] is None else sorted(p["id"] for p in entry["passages"])) == ids


def step(text: str, k: int, *ids: str, ask: str = "Retrieve") -> Step:
    return Step(ask, text, "", k=k, found=len(ids), passages=ids if ask == "Retrieve" else ())


@pytest.mark.parametrize(
    ("ids", "steps", "expected"),
    [
        ("abcde", [step("1", 5, *"abcde")], 5),
        ("ab", [step("1", 5, *"ab")], 5),  # a small corpus: nothing more was found
        ("abcdefgh", [step("1", 5, *"abcde"), step("2", 5, *"defgh")], 10),  # two were found by both
        ("abcdefg", [step("1", 5, *"abcde"), step("2", 5, *"defgh")], 7),  # the last was cut
        ("abcd", [step("1", 5, *"abcde"), step("2", 5, *"defgh")], 4),
        ("abcde", [step("1", 5, *"abcde"), step("2", 5)], 5),  # the second found nothing
        ("abcde", [step("1", 5, *"abcde"), step("shot", 5, *"vwxyz")], 5),
        ("abcde", [step("1", 5, *"abcde"), step("shot", 5, *"deuvw")], 5),
        ("abc", [step("1", 8, *"abcdefgh"), step("2", 3, *"abc", ask="Rank")], 3),
        ("", [step("1", 5)], 5),
        ("", [], 0),
    ],
)
def test_the_depth_of_a_list(ids: str, steps: list[Step], expected: int):
    assert depth(list(ids), steps) == expected


def test_a_run_scores_all_its_lists_at_one_depth():
    records = [
        {"passages": [], "failure": None, "k": 2},
        {"passages": [], "failure": None, "k": 6},
        {"passages": None, "failure": None, "k": 9},
        {"passages": [], "failure": "lost", "k": 8},
    ]
    assert deepest(records) == 6 and deepest(records[2:]) == deepest([]) == 0
    share_depth(records, 7)
    assert [entry["k"] for entry in records] == [7, 7, 9, 8]


def test_a_run_that_predicts_evidence_predicts_it_for_every_question():
    answers = [Answer("x", evidence=(("a", 0),)), Answer("x"), Answer("x", triples=())]
    records = [record(answer, Trace(())) for answer in answers]
    assert predicted(records) == {"evidence", "triples"} and predicted(records[1:2]) == predicted([]) == frozenset()
    share_predicted(records, ["evidence"])
    assert [entry["evidence"] for entry in records] == [[["a", 0]], [], []]
    assert [entry.get("triples") for entry in records] == [None, None, []]


def test_a_call_is_a_sample_or_a_log_probability():
    steps = (
        Step("Retrieve", "q", "", journalled=True),
        Step("HasLoglikelihood", "", "yes"),
        Step("Generate", "p", "a", finishes=("stop",) * 5, journalled=True),
        Step("Generate", "p", "a"),
        Step("Loglikelihood", "p", "-1.0"),
    )
    made = record(Answer("x"), Trace(steps))
    assert made["calls"] == {"Generate": 6, "Loglikelihood": 1, "Retrieve": 1} and made["journalled"] == 6
    counts = dict(counts_of(made))
    assert counts["calls"] == 7 == sum(step.calls for step in steps) and counts["Retrieve"] == 1
