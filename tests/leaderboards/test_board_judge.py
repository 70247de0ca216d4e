"""Acc-LM on a board: by the board's own judge, kept by answer, and missing rather than 0 where a verdict is."""

from __future__ import annotations

import json

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.scoring.judge import Opinion
from lm_eval_rag.harness.scoring.judge.choose import judges_of
from lm_eval_rag.leaderboards.submissions.board_judge import SPEC, VERDICTS, JudgeSpec, read_board_judge
from lm_eval_rag.leaderboards.submissions.verifying import verify
from tests.conftest import ROOT
from tests.leaderboards.conftest import TASK

PINNED = {"model": "hf", "pretrained": "org/judge", "revision": "a" * 40}


class Scripted:
    """Calls an answer right if it ends in a full stop; counts what it is asked; fails on some answers."""

    name = fingerprint = "scripted"

    def __init__(self, fails=()):
        self.fails, self.asked = fails, []

    def opinions(self, items):
        self.asked += [item.prediction for item in items]
        return [
            CallError("no reply") if item.prediction in self.fails else Opinion(float(item.prediction.endswith(".")))
            for item in items
        ]


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """``judged(judge)``: the board's judge, with a scripted one in place of its model; None reads verdicts alone."""
    (tmp_path / SPEC).write_text(json.dumps(PINNED))

    def judged(judge):
        monkeypatch.setattr(JudgeSpec, "judge", lambda self: judge)
        return read_board_judge(tmp_path, ask=judge is not None)

    return judged


def answer(id, doc):
    """A quarter each: right, right by the judge alone, wrong, and missing."""
    return (doc["answers"][0], f"{doc['answers'][0]}, it is.", f"nobody {id}", "I don't know")[int(id[1:]) % 4]


def test_verdicts_are_asked_once_and_kept_by_answer(write, judged, tmp_path):
    path, judge = write(answer=answer), Scripted()
    result = verify(path, judged(judge)).tasks[TASK]
    assert result.means["acc_lm"] == 0.5 and result.means["em"] == 0.25
    assert result.means["crag_score"] == 0.25 - 0.5, "CRAG's score stays by rules"
    assert all("it is." in text or "nobody" in text for text in judge.asked), "exact and missing answers need no judge"
    asked, lines = len(judge.asked), (tmp_path / VERDICTS).read_text().splitlines()
    assert asked == len(lines) == 100
    again = Scripted()
    assert verify(path, judged(again)).tasks[TASK].means["acc_lm"] == 0.5 and again.asked == []
    assert verify(path, judged(None)).tasks[TASK].means["acc_lm"] == 0.5, "without the model"


def test_a_missing_verdict_is_a_missing_column(write, judged):
    path = write(answer=answer)
    assert "acc_lm" not in verify(path).tasks[TASK].means
    assert "acc_lm" not in verify(path, judged(None)).tasks[TASK].means
    assert "acc_lm" not in verify(path, judged(Scripted(fails=["nobody q002"]))).tasks[TASK].means
    assert verify(path, judged(Scripted())).tasks[TASK].means["acc_lm"] == 0.5, "the one that failed is asked again"


def test_verdicts_of_another_judge_are_not_taken(write, judged, tmp_path):
    path = write(answer=answer)
    verify(path, judged(Scripted()))
    (tmp_path / SPEC).write_text(json.dumps({**PINNED, "revision": "b" * 40}))
    assert "acc_lm" not in verify(path, judged(None)).tasks[TASK].means


def test_verdicts_to_another_prompt_are_not_taken(write, judged, monkeypatch):
    path = write(answer=answer)
    assert verify(path, judged(Scripted())).tasks[TASK].means["acc_lm"] == 0.5
    monkeypatch.setattr("lm_eval_rag.leaderboards.submissions.board_judge.prompt", lambda item, check: "another")
    assert "acc_lm" not in verify(path, judged(None)).tasks[TASK].means


@pytest.mark.parametrize(
    "changes",
    [{"revision": "main"}, {"model": "openai-chat-completions"}, {"pretrained": ""}, {"revision": None}, {"key": "x"}],
)
def test_a_judge_is_open_and_pinned(changes, tmp_path):
    (tmp_path / SPEC).write_text(json.dumps({**PINNED, **changes}))
    with pytest.raises(UserError, match=SPEC):
        read_board_judge(tmp_path)


def test_a_board_without_a_judge_has_none(tmp_path):
    assert read_board_judge(tmp_path) is None


@pytest.mark.parametrize("line", ["x", "{}", '{"judge": "a", "answer": "b", "correct": 2, "missing": false}'])
def test_a_damaged_verdict_is_said(line, judged, tmp_path):
    (tmp_path / VERDICTS).write_text(line + "\n")
    with pytest.raises(UserError, match="line 1 is no verdict"):
        judged(None)


def test_a_submission_cannot_bring_verdicts(write):
    from lm_eval_rag.leaderboards.submissions.reading import RefusedError

    path = write()
    (path / VERDICTS).write_text("{}\n")
    with pytest.raises(RefusedError, match="no part of a submission"):
        verify(path)


def test_our_own_board_has_the_judge_that_runs_call_open():
    """Verdicts of a run with ``judge=open`` and of the board are of one model, at one revision, in one precision."""
    ours = read_board_judge(ROOT / "leaderboards" / "entries", ask=True)
    (open_judge,) = judges_of({"judge": "open"})
    assert ours is not None and ours.asked is not None and ours.asked.name == open_judge.name
