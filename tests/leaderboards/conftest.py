"""Submissions for ruleqa_demo, whose data are made in a second and need no network."""

from __future__ import annotations

import json

import pytest

from lm_eval_rag.leaderboards.submissions.answer_key import answer_key

TASK = "ruleqa_demo"


@pytest.fixture(scope="session")
def key():
    return answer_key(TASK)


@pytest.fixture
def write(key, tmp_path):
    """Writes a submission: answers and fields of lines by functions of (id, document), fields of the card by name."""

    def write(name="An entry", answer=lambda id, doc: "x", folder=None, fields=lambda id, doc: {}, **card):
        path = tmp_path / (folder or name.lower().replace(" ", "-"))
        (path / "predictions").mkdir(parents=True)
        about = {"version": key.version, "data": key.data, "arguments": {}}
        whole = {"name": name, "team": "a team", "method": "a_method", "package": "0", "tasks": {TASK: about}, **card}
        (path / "submission.json").write_text(json.dumps(whole))
        lines = [{"id": id, "answer": answer(id, doc), **fields(id, doc)} for id, doc in key.questions.items()]
        (path / "predictions" / f"{TASK}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write
