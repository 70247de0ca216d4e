"""The journal: what is served, stored and mixed, and which files are refused."""

import asyncio
import hashlib
import json
import multiprocessing
import os
import signal
import socket
import sqlite3
import threading
import time

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.journal import LOCKED, Call, Journal, Reply


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


# --- calls one by one, and two runs on one file


def asking(journal, calls, compute):
    """The replies to calls that are made all at once."""

    async def main():
        return await asyncio.gather(*(journal.call(call, lambda call=call: compute(call)) for call in calls))

    return asyncio.run(main())


def test_each_call_is_stored_when_its_reply_arrives(tmp_path):
    """And not when those that were made with it have come back as well."""
    journal, other = Journal(tmp_path / "j.sqlite", "r"), Journal(tmp_path / "j.sqlite", "r")
    seen = []

    async def compute(call):
        if call.request == "slow":
            while len(other) < 3:
                await asyncio.sleep(0.001)
            seen.append(len(other))
        return call.request.upper(), 0.5

    replies = asking(journal, [Call("m", request) for request in ("slow", "a", "b", "c", "a")], compute)
    assert [reply.value for reply in replies] == ["SLOW", "A", "B", "C", "A"] and seen == [3]
    assert {reply.seconds for reply in replies} == {0.5} and len(journal) == 4


def test_a_second_run_waits_for_a_call_that_the_first_makes(tmp_path):
    first, second = Journal(tmp_path / "j.sqlite", "r"), Journal(tmp_path / "j.sqlite", "r")
    made, call = [], Call("m", "x")

    async def main():
        started, go = asyncio.Event(), asyncio.Event()

        async def by_first():
            made.append("first")
            started.set()
            await go.wait()
            return "reply", 1.0

        async def by_second():
            made.append("second")
            return "another", 1.0

        one = asyncio.create_task(first.call(call, by_first))
        await started.wait()
        two = asyncio.create_task(second.call(call, by_second))
        await asyncio.sleep(0.05)
        assert not two.done()
        go.set()
        return await one, await two

    one, two = asyncio.run(main())
    assert made == ["first"] and (one.value, two.value) == ("reply", "reply")
    assert not one.journalled and two.journalled


def test_the_claims_of_a_process_that_died_are_taken_over(tmp_path):
    path = tmp_path / "j.sqlite"
    journal = Journal(path, "r")
    owner = json.dumps([socket.gethostname(), 2**22 - 1, 1.0, "gone"])
    with sqlite3.connect(path) as base:
        base.execute("INSERT INTO claims VALUES (?, ?, ?)", (Call("m", "x").key, owner, time.time()))

    async def compute(call):
        return "reply", 1.0

    assert asking(journal, [Call("m", "x")], compute)[0].value == "reply"
    assert sqlite3.connect(path).execute("SELECT COUNT(*) FROM claims").fetchone() == (0,)


def test_a_claim_of_its_own_does_not_hold_it_up(tmp_path):
    """One that it could not release, on a full disk."""
    journal = Journal(tmp_path / "j.sqlite", "r")
    assert journal._claim(Call("m", "x").key) is True

    async def compute(call):
        return "reply", 1.0

    async def main():
        return await asyncio.wait_for(journal.call(Call("m", "x"), lambda: compute("x")), 2)

    assert asyncio.run(main()).value == "reply"


def test_a_reply_that_is_stored_between_two_looks_is_served(tmp_path, monkeypatch):
    journal, other = Journal(tmp_path / "j.sqlite", "r"), Journal(tmp_path / "j.sqlite", "r")
    look, call = journal._find, Call("m", "x")

    def find(keys):
        replies = look(keys)
        other._store({call.key: Reply("first", 2.0)})
        return replies

    async def compute(call):
        pytest.fail("called")

    monkeypatch.setattr(journal, "_find", find)
    (reply,) = asking(journal, [call], compute)
    assert (reply.value, reply.seconds, reply.journalled) == ("first", 2.0, True)


def test_a_stored_reply_is_final(tmp_path):
    """A run whose claim was taken over, and which comes back later, gets the reply that is there."""
    journal, other = Journal(tmp_path / "j.sqlite", "r"), Journal(tmp_path / "j.sqlite", "r")

    async def compute(call):
        other._store({call.key: Reply("first", 2.0)})
        return "second", 1.0

    (reply,) = asking(journal, [Call("m", "x")], compute)
    assert (reply.value, reply.seconds, reply.journalled) == ("first", 2.0, True)


def test_a_failed_call_leaves_no_claim(tmp_path):
    journal = Journal(tmp_path / "j.sqlite", "r")

    async def fails(call):
        return CallError("no")

    async def raises(call):
        raise KeyError("x")

    assert isinstance(asking(journal, [Call("m", "x")], fails)[0], CallError)
    with pytest.raises(KeyError):
        asking(journal, [Call("m", "x")], raises)
    assert sqlite3.connect(tmp_path / "j.sqlite").execute("SELECT COUNT(*) FROM claims").fetchone() == (0,)
    assert len(journal) == 0


def test_a_foreign_file_a_damaged_reply_and_another_schema_are_refused(tmp_path):
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as base:
        base.execute("CREATE TABLE flights (id)")
    with pytest.raises(UserError, match=r"no journal of ours.*flights"):
        Journal(foreign, "r")
    path = tmp_path / "j.sqlite"
    Journal(path, "r").serve([Call("m", "x")], lambda part: ["y"], 1)
    with sqlite3.connect(path) as base:
        base.execute("UPDATE calls SET reply = '{'")
    with pytest.raises(UserError, match="is damaged: the reply of call"):
        Journal(path, "r").serve([Call("m", "x")], lambda part: ["y"], 1)
    with sqlite3.connect(path) as base:
        base.execute("UPDATE meta SET value = '7' WHERE name = 'schema'")
    with pytest.raises(UserError, match="schema '7'"):
        Journal(path, "r")


def test_a_locked_journal_says_so_after_the_time_it_waits(tmp_path, monkeypatch):
    assert LOCKED < 5
    monkeypatch.setattr("lm_eval_rag.harness.core.journal.LOCKED", 0.3)
    path = tmp_path / "j.sqlite"
    Journal(path, "r").close()
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(UserError, match=f"^The journal {path} is locked by another program: wait.*{MEND}") as raised:
        Journal(path, "r")
    assert 0.3 <= time.monotonic() - began < 3
    assert "emove" not in str(raised.value) and "elete" not in str(raised.value)


MEND = r"journal=PATH, or journal=off\.$"


def damaged(path):
    stored = Journal(path, "a run of a long name")
    stored.serve([Call("m", "x")], lambda part: ["y"], 1)
    stored.close()
    with sqlite3.connect(path) as base:
        base.execute("UPDATE calls SET reply = '{'")


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["CREATE TABLE flights (id)", "CREATE TABLE meta (name)"], r"the tables flights, meta\)\. Give another "),
        (["UPDATE meta SET value = '7' WHERE name = 'schema'"], r"schema '7'; this .* writes 1\. Give another "),
        (["DELETE FROM meta WHERE name = 'schema'", "INSERT INTO meta VALUES ('schema', NULL)"], "has schema None; "),
        (["UPDATE meta SET value = 'another run of a long name' WHERE name = 'run'"],
         r"another run \(another run , this one is a run of a l\): method, .* versions differ\. Give another "),
        ([], r"is damaged: the reply of call [0-9a-f]{12} cannot be read\. Give another "),
    ],
)  # fmt: skip
def test_every_refusal_names_the_file_and_ends_with_the_same_mend(path, statements, says):
    if "flights" in str(statements):
        path.parent.mkdir()
    else:
        damaged(path)
    with sqlite3.connect(path) as base:
        for statement in statements:
            base.execute(statement)
    with pytest.raises(UserError, match=f"^(The journal )?{path} .*{says}.*{MEND}"):
        Journal(path, "a run of a long name").serve([Call("m", "x")], lambda part: ["y"], 1)


def test_a_journal_from_before_claims_is_read(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT)")
        base.execute("CREATE TABLE calls (key TEXT PRIMARY KEY, reply TEXT, seconds REAL, at REAL)")
        base.execute("INSERT INTO meta VALUES ('run', 'r'), ('schema', '1')")
        base.execute("INSERT INTO calls VALUES (?, '\"old\"', 0.5, 0)", (Call("m", "x").key,))
    (reply,) = Journal(path, "r").serve([Call("m", "x")], lambda part: pytest.fail("called"), 1)
    assert (reply.value, reply.seconds, reply.journalled) == ("old", 0.5, True)


def test_a_key_is_the_hash_of_the_sorted_json():
    by_hand = hashlib.sha256(b'["m", {"a": 1, "b": [2]}, 3]').hexdigest()
    assert Call("m", {"b": [2], "a": 1}, 3).key == Call("m", {"a": 1, "b": [2]}, 3).key == by_hand


def test_a_journal_is_made_in_folders_that_are_not_there_and_may_have_no_name(tmp_path):
    path = tmp_path / "a" / "b" / "j.sqlite"
    Journal(path).serve([Call("m", "x")], lambda part: ["東京"], 1)
    assert len(Journal(path, "")) == 1 and len(Journal(None)) == 0
    base = sqlite3.connect(path)
    assert base.execute("SELECT reply FROM calls").fetchone() == ('"東京"',)
    assert base.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert dict(base.execute("SELECT name, value FROM meta")) == {"run": "", "schema": "1"}


def test_the_journal_serves_other_threads(path):
    journal, replies = Journal(path), []
    thread = threading.Thread(target=lambda: replies.extend(serve(journal, CALLS, [])))
    thread.start()
    thread.join()
    assert values(replies) == list("ABCABD") and len(journal) == 4


@pytest.mark.parametrize("kept", [True, False])
def test_the_seconds_of_a_batch_are_shared_by_its_calls(path, kept):
    def slow(positions):
        time.sleep(0.08)
        return ["x"] * len(positions)

    replies = Journal(path if kept else None).serve([Call("m", i) for i in range(4)], slow, 4)
    assert len({reply.seconds for reply in replies}) == 1 and 0.02 <= replies[0].seconds < 0.075
    assert not any(reply.journalled for reply in replies)


def test_too_few_replies_are_an_error(path):
    with pytest.raises(ValueError, match="shorter"):
        Journal(path).serve([Call("m", i) for i in range(4)], lambda part: ["x"], 4)


@pytest.mark.parametrize("kept", [True, False])
def test_equal_calls_that_are_made_at_once_are_one(path, kept):
    made = []

    async def compute(call):
        made.append(call.request)
        await asyncio.sleep(0.01)
        return call.request.upper(), 0.5

    replies = asking(Journal(path if kept else None), [Call("m", text) for text in "aabab"], compute)
    assert [reply.value for reply in replies] == list("AABAB") and made == ["a", "b"]


def test_who_waits_for_a_call_that_breaks_is_cancelled_and_a_later_call_is_made(path):
    journal = Journal(path)

    async def breaks():
        await asyncio.sleep(0.01)
        raise KeyError("x")

    async def works():
        return "reply", 1.0

    async def main():
        two = [asyncio.create_task(journal.call(Call("m", "x"), breaks)) for _ in range(2)]
        first, second = await asyncio.gather(*two, return_exceptions=True)
        return first, second, await journal.call(Call("m", "x"), works)

    first, second, later = asyncio.run(main())
    assert isinstance(first, KeyError) and isinstance(second, asyncio.CancelledError) and later.value == "reply"
