"""The journal: what is served, stored and mixed, and which files are refused."""

import multiprocessing
import os
import signal
import sqlite3
import time

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.journal import Call, Journal, Reply


def serve(journal, calls, made, batch=2, fail=()):
    def compute(positions):
        made.extend(calls[i].request for i in positions)
        return [CallError("no") if calls[i].request in fail else calls[i].request.upper() for i in positions]

    return journal.serve(calls, compute, batch)


CALLS = [Call("model", name) for name in "abcabd"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "journal.sqlite"


def values(replies):
    return [reply.value if isinstance(reply, Reply) else None for reply in replies]


@pytest.mark.parametrize("kept", [True, False])
def test_equal_calls_are_made_once_and_answered_everywhere(path, kept):
    made = []
    assert values(serve(Journal(path if kept else None), CALLS, made)) == list("ABCABD")
    assert made == list("abcd")


def test_a_second_run_makes_no_call(path):
    first, second = [], []
    serve(Journal(path, "run"), CALLS, first)
    replies = serve(Journal(path, "run"), CALLS, second)
    assert second == [] and values(replies) == list("ABCABD") and all(reply.journalled for reply in replies)


def test_failures_are_not_stored(path):
    made = []
    replies = serve(Journal(path), CALLS, made, fail={"b"})
    assert [type(reply) for reply in replies].count(CallError) == 2
    made.clear()
    assert values(serve(Journal(path), CALLS, made)) == list("ABCABD") and made == ["b"]


@pytest.mark.parametrize("other", [Call("other", "a"), Call("model", "a", sample=1), Call("model", ["a"])])
def test_keys_differ_by_backend_request_and_draw(other):
    assert other.key != Call("model", "a").key


def test_seconds_are_those_of_the_first_time(path):
    def slow(positions):
        time.sleep(0.05)
        return ["x" for _ in positions]

    first = Journal(path).serve([Call("m", 1)], slow, 1)[0]
    again = Journal(path).serve([Call("m", 1)], slow, 1)[0]
    assert again.seconds == first.seconds >= 0.05


def test_another_runs_journal_is_refused(path):
    Journal(path, "run one").close()
    with pytest.raises(UserError, match=r"another run \(run one, this one is run two\).*journal=PATH"):
        Journal(path, "run two")


def test_a_file_that_is_no_journal_is_refused_and_left_alone(path):
    path.parent.mkdir()
    path.write_text("precious" * 100)
    with pytest.raises(UserError, match="cannot be used"):
        Journal(path)
    assert path.read_text() == "precious" * 100


def _work(path, count):
    journal = Journal(path, "run")

    def compute(positions):
        time.sleep(0.002)
        with open(f"{path}.made", "a") as made:
            made.write("".join(f"{i}\n" for i in positions))
        return [i * i for i in positions]

    journal.serve([Call("m", i) for i in range(count)], compute, 4)


def test_killed_anywhere_it_repeats_no_stored_call(path):
    path.parent.mkdir()
    process = multiprocessing.get_context("fork").Process(target=_work, args=(path, 400))
    process.start()
    made = path.with_name("journal.sqlite.made")
    while not made.exists() or made.read_text().count("\n") < 40:  # not a fixed time: the machine may be busy
        assert process.is_alive()
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    stored = sqlite3.connect(path).execute("SELECT COUNT(*) FROM calls").fetchone()[0]
    before = len((path.parent / "journal.sqlite.made").read_text().split())
    _work(path, 400)
    after = len((path.parent / "journal.sqlite.made").read_text().split())
    assert 0 < stored < 400 and before - stored <= 4  # at most the batch in flight is repeated
    assert after - before == 400 - stored
