"""Submissions for ruleqa_demo, whose data are made in a second and need no network."""

from __future__ import annotations

import json

import pytest

from lm_eval_rag.leaderboards.submissions.answer_key import answer_key

TASK = "ruleqa_demo"


@pytest.fixture(scope="session")
def key():
    return answer_key(TASK)


def writer(key, folder):
    """Writes submissions into a folder: answers and fields of lines by functions of (id, document), the card by name."""

    def write(
        name="An entry", answer=lambda id, doc: "x", folder=folder, fields=lambda id, doc: {}, place=None, **card
    ):
        path = folder / (place or name.lower().replace(" ", "-"))
        (path / "predictions").mkdir(parents=True)
        about = {"version": key.version, "data": key.data, "arguments": {}}
        whole = {"name": name, "team": "a team", "method": "a_method", "package": "0", "tasks": {TASK: about}, **card}
        (path / "submission.json").write_text(json.dumps(whole))
        lines = [{"id": id, "answer": answer(id, doc), **fields(id, doc)} for id, doc in key.questions.items()]
        (path / "predictions" / f"{TASK}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


@pytest.fixture
def write(key, tmp_path):
    """:func:`writer` of the test's own folder; ``folder`` names the folder of the entry."""
    write_there = writer(key, tmp_path)
    return lambda *parts, folder=None, **named: write_there(*parts, place=folder, **named)
