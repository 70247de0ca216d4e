"""A failed question keeps the steps it took; a journal that takes over another one keeps its own calls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Generate, Retrieve, generate, retrieve
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.driver import Driver
from lm_eval_rag.harness.core.journal import Call, Journal, Reply
from lm_eval_rag.harness.core.types import Answer, Plan, Query, Step

QUERIES = [Query(f"q{i}", "") for i in range(5)]


class Texts:
    """Answers an ask with its own text, in upper case; fails on the texts in ``fails``."""

    batch, costly = 2, False

    def __init__(self, fails: Sequence[str] = ()) -> None:
        self.fails = fails

    def serve(self, asked: Sequence[tuple[Query, Any]]) -> list[Served | CallError]:
        texts = [ask.prompt if isinstance(ask, Generate) else ask.text for _, ask in asked]
        return [
            CallError(f"{text} failed") if text in self.fails else Served((text.upper(),), Step("step", text, ""))
            for text in texts
        ]


def two_then_generate(query: Query) -> Plan[Answer]:
    """Two retrievals, then a generation."""
    yield from retrieve(f"{query.id} first", 1)
    yield from retrieve(f"{query.id} second", 1)
    return Answer((yield from generate(f"{query.id} last")))


@pytest.mark.parametrize(
    ("fails", "asked"),
    [("q2 first", []), ("q2 second", ["q2 first"]), ("q2 last", ["q2 first", "q2 second"])],
)
def test_a_failed_question_keeps_the_steps_before_the_failure(fails: str, asked: list[str]) -> None:
    backend = Texts([fails])
    results = Driver(two_then_generate, {Retrieve: backend, Generate: backend}).run(QUERIES)
    answer, trace = results[2]
    assert (answer, trace.failure) == (Answer(""), f"{fails} failed")
    assert [step.request for step in trace.steps] == asked
    for query, (other, steps) in zip(QUERIES, results, strict=True):
        if query.id != "q2":
            assert (other.text, steps.failure) == (f"{query.id} last".upper(), None)
            assert [step.request for step in steps.steps] == [
                f"{query.id} {word}" for word in ("first", "second", "last")
            ]


def test_a_handled_failure_keeps_the_steps_on_both_sides_of_it() -> None:
    def tries_again(query: Query) -> Plan[Answer]:
        yield from retrieve("before", 1)
        try:
            yield from retrieve("bad", 1)
        except CallError:
            yield from retrieve("after", 1)
        return Answer("done")

    ((answer, trace),) = Driver(tries_again, {Retrieve: Texts(["bad"])}).run(QUERIES[:1])
    assert (answer.text, trace.failure) == ("done", None)
    assert [step.request for step in trace.steps] == ["before", "after"]


def stored(path: Path, replies: dict[str, str]) -> Journal:
    """A journal that holds a reply to each request."""
    journal = Journal(path, "run")
    calls = [Call("model", request) for request in replies]
    journal.serve(calls, lambda positions: [replies[calls[i].request] for i in positions], 1)
    return journal


def read(journal: Journal, requests: str) -> list[Any]:
    """What a journal serves without a call."""

    def refuse(positions: list[int]) -> list[CallError]:
        return [CallError("not stored") for _ in positions]

    replies = journal.serve([Call("model", request) for request in requests], refuse, 1)
    return [reply.value if isinstance(reply, Reply) else None for reply in replies]


def test_taking_over_adds_calls_and_replaces_none(tmp_path: Path) -> None:
    own = stored(tmp_path / "own.sqlite", {"a": "own a", "b": "own b"})
    other = stored(tmp_path / "other.sqlite", {"b": "other b", "c": "other c"})
    other.close()
    own.take_over(tmp_path / "other.sqlite")
    assert len(own) == 3
    assert read(own, "abcd") == ["own a", "own b", "other c", None]
    own.take_over(tmp_path / "other.sqlite")  # a second time changes nothing
    own.close()
    again = Journal(tmp_path / "own.sqlite", "run")
    assert read(again, "abcd") == ["own a", "own b", "other c", None]
    assert read(Journal(tmp_path / "other.sqlite", "run"), "abc") == [None, "other b", "other c"]


def test_taking_over_what_is_no_journal_says_so_and_keeps_its_own(tmp_path: Path) -> None:
    own = stored(tmp_path / "own.sqlite", {"a": "own a"})
    (tmp_path / "other.sqlite").write_text("no journal" * 100)
    with pytest.raises(UserError, match="cannot be used"):
        own.take_over(tmp_path / "other.sqlite")
    assert read(own, "a") == ["own a"]
