"""The note of a checkpoint and its curves."""

import json
from pathlib import Path

import pytest

from lm_eval_rag.harness.checkpoints.note import NOTE, Note, read_note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.train.curves import write_curves

FULL = Note("retriever", "rgft", None, ("a",), ("a/1",), {"epochs": 2}, 7, {"mean": 0.5}, {"numpy": "2"})


def test_a_note_comes_back(tmp_path: Path) -> None:
    for note in (FULL, Note("generator", "ssft", "3")):
        write_note(tmp_path, note)
        assert read_note(tmp_path) == note


def test_no_note(tmp_path: Path) -> None:
    assert read_note(tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"mode": "rgft"}'])
def test_a_damaged_note_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / NOTE).write_text(content)
    with pytest.raises(UserError, match=r"rulerag\.json is damaged"):
        read_note(tmp_path)


def test_unknown_entries_are_passed_over(tmp_path: Path) -> None:
    write_note(tmp_path, FULL)
    path = tmp_path / NOTE
    path.write_text(json.dumps({**json.loads(path.read_text()), "later": 1}))
    assert read_note(tmp_path) == FULL


def test_curves(tmp_path: Path) -> None:
    rows = [{"step": 0, "loss": 2.0}, {"step": 10, "loss": 1.0, "dev": 0.5}]
    write_curves(tmp_path, rows)
    assert json.loads((tmp_path / "curves.json").read_text()) == rows
    pytest.importorskip("matplotlib")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
