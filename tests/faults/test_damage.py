"""A damaged journal ends in one clear message, and never in wrong answers."""

import random
import sqlite3

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.journal import Call, Journal

CALLS = [Call("model", [i, "x" * 200]) for i in range(300)]


def square(positions):
    return [f"{i * i} " + "y" * 200 for i in positions]


def values(path):
    journal = Journal(path, "run")
    try:
        return [reply.value for reply in journal.serve(CALLS, square, 50)]
    finally:
        journal.close()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "j.sqlite"
    assert values(path) == square(range(300))
    assert not path.with_name("j.sqlite-wal").exists() or not path.with_name("j.sqlite-wal").stat().st_size
    return path


def right_or_clear(path):
    """What may happen: all values are right, or one message that says what to do."""
    try:
        assert values(path) == square(range(300))
    except UserError as error:
        assert f"The journal {path} cannot be used: " in str(error) and "journal=off" in str(error)
        return False
    return True


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_a_truncated_journal(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert not right_or_clear(path)


def test_pages_overwritten_at_random(path):
    data, rng, usable = path.read_bytes(), random.Random(0), []
    for _ in range(30):
        page = rng.randrange(1, len(data) // 4096) * 4096
        path.write_bytes(data[:page] + bytes(4096) + data[page + 4096 :])
        usable.append(right_or_clear(path))
    assert not all(usable)


def test_a_full_disk(path, monkeypatch):
    journal = Journal(path, "run")
    journal._base.execute("PRAGMA max_page_count = 1")  # no page can be added
    with pytest.raises(UserError, match=r"cannot be used: database or disk is full.*journal=PATH"):
        journal.serve([Call("other", [i, "x" * 5000]) for i in range(50)], lambda part: ["z" * 5000 for _ in part], 50)
    journal.close()
    assert sqlite3.connect(path).execute("SELECT COUNT(*) FROM calls").fetchone()[0] == 300


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be used"):
        Journal(tmp_path / "file" / "j.sqlite")
