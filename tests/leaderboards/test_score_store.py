"""Scores of questions as Parquet: appended by data and scorer, never changed."""

from __future__ import annotations

import pytest

from lm_eval_rag.cli import main
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.submissions import answer_key
from lm_eval_rag.leaderboards.submissions.score_store import stored
from lm_eval_rag.leaderboards.submissions.verifying import verify
from tests.leaderboards.conftest import TASK


def test_versions_stand_apart_and_nothing_is_changed(write, key, tmp_path, monkeypatch, capsys):
    entry = write("An entry", answer=lambda id, doc: doc["answers"][0] if int(id[1:]) % 2 else "nobody")
    store = tmp_path / "store"
    assert main(["verify", str(entry), "--store", str(store)]) == 0
    (first,) = stored(store, TASK)
    assert (first.entry, first.data, first.scorer) == ("an-entry", key.data, answer_key.scorer_hash())
    assert first.scores() == {name: dict(values) for name, values in verify(entry).tasks[TASK].scores.items()}
    assert sum(first.scores()["em"].values()) == 100
    content, time = first.path.read_bytes(), first.path.stat().st_mtime_ns
    assert main(["verify", str(entry), "--store", str(store)]) == 0
    assert (first.path.read_bytes(), first.path.stat().st_mtime_ns) == (content, time), "it is there already"

    monkeypatch.setattr(answer_key, "scorer_hash", lambda: "f" * 16)
    assert main(["verify", str(entry), "--store", str(store)]) == 0
    both = stored(store, TASK)
    assert {one.scorer for one in both} == {first.scorer, "f" * 16} and len(both) == 2
    assert first.path.read_bytes() == content, "the old version stays readable"
    capsys.readouterr()


def test_a_changed_entry_is_another_file(write, tmp_path, capsys):
    entry, store = write(), tmp_path / "store"
    assert main(["verify", str(entry), "--store", str(store)]) == 0
    card = entry / "submission.json"
    card.write_text(card.read_text().replace("a team", "another team"))
    assert main(["verify", str(entry), "--store", str(store)]) == 0
    assert len({one.digest for one in stored(store, TASK)}) == 2
    capsys.readouterr()


def test_questions_without_a_score_are_null(write, tmp_path, capsys):
    """Recall needs passages, which only some answers name."""
    entry = write(fields=lambda id, doc: {"retrieved": ["d0001"]} if int(id[1:]) % 2 else {})
    assert main(["verify", str(entry), "--store", str(tmp_path / "store")]) == 0
    (one,) = stored(tmp_path / "store", TASK)
    assert len(one.scores()["recall@1"]) == 100 and len(one.scores()["em"]) == 200
    capsys.readouterr()


def test_there_must_be_a_store(tmp_path):
    with pytest.raises(UserError, match="--store"):
        stored(tmp_path / "nothing", TASK)
