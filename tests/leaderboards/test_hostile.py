"""Hostile submissions: none is accepted, none crashes, each is refused in a second with a reason on one line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import zipfile

import pytest

from lm_eval_rag.leaderboards.submissions.form import FILE_BYTES, LINE_BYTES, TASKS, Prediction
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, read_submission
from lm_eval_rag.leaderboards.submissions.verifying import verify
from tests.leaderboards.conftest import TASK

SECOND = 1.0
RTL, NUL, ESCAPE = "\u202e", "\x00", "\x1b[2J"


def refused(path, by=read_submission):
    """The reason; fails if the submission is accepted, takes too long, or ends in another error."""
    began = time.process_time()
    with pytest.raises(RefusedError) as caught:
        by(path)
    assert time.process_time() - began < SECOND
    reason = str(caught.value)
    assert reason.isprintable() and len(reason) < 900, reason
    return reason


# --- the folder


def link_out(path):
    (path / "predictions" / f"{TASK}.jsonl").unlink()
    (path / "predictions" / f"{TASK}.jsonl").symlink_to("/etc/passwd")


def link_folder(path):
    os.rename(path / "predictions", path / "elsewhere")
    (path / "predictions").symlink_to(path / "elsewhere")


def link_card(path):
    (path / "submission.json").rename(path.parent / "card")
    (path / "submission.json").symlink_to(path.parent / "card")


def fifo(path):
    (path / "predictions" / f"{TASK}.jsonl").unlink()
    os.mkfifo(path / "predictions" / f"{TASK}.jsonl")


def huge(path):
    with (path / "predictions" / f"{TASK}.jsonl").open("r+b") as file:
        file.truncate(FILE_BYTES + 1)


def zeros(path):
    with (path / "predictions" / f"{TASK}.jsonl").open("wb") as file:
        file.truncate(FILE_BYTES)


def many(path):
    for i in range(TASKS + 2):
        (path / "predictions" / f"t{i}.jsonl").write_text("")


FOLDERS = {
    "link out of the folder": link_out,
    "link as folder": link_folder,
    "link as card": link_card,
    "pipe": fifo,
    "file of 64 MB and one": huge,
    "sparse file of zeros": zeros,
    "too many files": many,
    "no card": lambda path: (path / "submission.json").unlink(),
    "no predictions": lambda path: (path / "predictions" / f"{TASK}.jsonl").unlink(),
    "card is a folder": lambda path: ((path / "submission.json").unlink(), (path / "submission.json").mkdir()),
    "script": lambda path: (path / "setup.py").write_text("import os"),
    "pickle": lambda path: (path / "scores.pkl").write_bytes(b"\x80\x04cos\nsystem\n."),
    "Makefile": lambda path: (path / "Makefile").write_text("all:\n\tcurl evil"),
    "workflow": lambda path: ((path / ".github").mkdir(), (path / ".github" / "x.yml").write_text("on: push")),
    "archive": lambda path: zipfile.ZipFile(path / "predictions" / "a.zip", "w").close(),
    "nested folder": lambda path: (path / "predictions" / "deeper").mkdir(),
    "shell name": lambda path: (path / "predictions" / "$(touch x).jsonl").write_text(""),
    "name with line break": lambda path: (path / "predictions" / "a\nb.jsonl").write_text(""),
    "name with escape": lambda path: (path / f"{ESCAPE}.txt").write_text(""),
    "task of no card": lambda path: (path / "predictions" / "ruleqa_i.jsonl").write_text(""),
    "scores of their own": lambda path: (path / "scores.json").write_text('{"em": 1}'),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_hostile_folder_is_refused(name, write):
    path = write()
    FOLDERS[name](path)
    refused(path)


def test_a_file_or_nothing_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link", "nothing"):
        refused(tmp_path / name)


# --- the card

CARDS = {
    "scores": {"scores": {"em": 1.0}},
    "tier": {"tier": "re-run"},
    "script as name": {"name": "<script>alert(1)</script>" * 10},
    "right to left": {"name": f"abc{RTL}def"},
    "zero width": {"name": "a\u200bb"},
    "line break": {"team": "a\nb"},
    "escape": {"team": f"a{ESCAPE}"},
    "nul": {"method": f"a{NUL}"},
    "blank": {"name": " "},
    "empty": {"name": ""},
    "spaces around": {"name": " a "},
    "name of 81": {"name": "a" * 81},
    "number as name": {"name": 5},
    "list as name": {"name": ["a"]},
    "null as name": {"name": None},
    "address of a script": {"code": "javascript:alert(1)"},
    "address of data": {"code": "data:text/html,x"},
    "plain http": {"code": "http://a.b"},
    "file address": {"code": "file:///etc/passwd"},
    "quote in address": {"code": 'https://a.b/" onmouseover="x'},
    "angle in address": {"code": "https://a.b/<x>"},
    "long address": {"code": "https://a.b/" + "a" * 300},
    "negative size": {"parameters": -1},
    "endless size": {"parameters": 10**15},
    "half a parameter": {"parameters": 0.5},
    "true parameters": {"parameters": True},
    "size as text": {"parameters": "7B"},
    "other schema": {"schema_version": 2},
    "schema as text": {"schema_version": "1"},
    "no tasks": {"tasks": {}},
    "list of tasks": {"tasks": [TASK]},
    "task with path": {"tasks": {"../../etc": {"version": "1", "data": "0" * 16, "arguments": {}}}},
    "task with capitals": {"tasks": {"RULEQA": {"version": "1", "data": "0" * 16, "arguments": {}}}},
    "short hash": {"tasks": {TASK: {"version": "1", "data": "0", "arguments": {}}}},
    "hash with capitals": {"tasks": {TASK: {"version": "1", "data": "A" * 16, "arguments": {}}}},
    "no version": {"tasks": {TASK: {"data": "0" * 16, "arguments": {}}}},
    "nested arguments": {"tasks": {TASK: {"version": "1", "data": "0" * 16, "arguments": {"a": {"b": "c"}}}}},
    "65 arguments": {
        "tasks": {TASK: {"version": "1", "data": "0" * 16, "arguments": {f"a{i}": "" for i in range(65)}}}
    },
    "long argument": {"tasks": {TASK: {"version": "1", "data": "0" * 16, "arguments": {"a": "b" * 501}}}},
    "long note": {"contamination": "a" * 1001},
    "hidden note": {"training_data": f"none{RTL}"},
}  # fmt: skip


@pytest.mark.parametrize("name", CARDS)
def test_a_hostile_card_is_refused(name, write):
    path = write()
    card = json.loads((path / "submission.json").read_text())
    (path / "submission.json").write_text(json.dumps({**card, **CARDS[name]}))
    assert "submission.json" in refused(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"name": NaN}', b"[" * 100_000, b'{"a":' * 50_000, b" " * (1 << 19),
     b'{"name": "\\ud800"}', b"PK\x03\x04", b"\x80\x04.", b"#!/bin/sh\n"],
)  # fmt: skip
def test_a_card_that_is_no_card_is_refused(content, write):
    path = write()
    (path / "submission.json").write_bytes(content)
    refused(path)


# --- the lines

LINES = {
    "no id": {"answer": "x"},
    "no answer": {"id": "q000"},
    "number as answer": {"id": "q000", "answer": 5},
    "null as answer": {"id": "q000", "answer": None},
    "list as answer": {"id": "q000", "answer": ["a", "b"]},
    "long answer": {"id": "q000", "answer": "a" * 4001},
    "score": {"id": "q000", "answer": "x", "em": 1.0},
    "verdict": {"id": "q000", "answer": "x", "_judge": {"correct": 1.0}},
    "record": {"id": "q000", "answer": "x", "_rag": {}},
    "empty id": {"id": "", "answer": "x"},
    "long id": {"id": "a" * 501, "answer": "x"},
    "number as id": {"id": 5, "answer": "x"},
    "text as retrieved": {"id": "q000", "answer": "x", "retrieved": "d1"},
    "numbers as retrieved": {"id": "q000", "answer": "x", "retrieved": [1]},
    "501 retrieved": {"id": "q000", "answer": "x", "retrieved": ["d"] * 501},
    "nested retrieved": {"id": "q000", "answer": "x", "retrieved": [["d"]]},
    "texts of passages": {"id": "q000", "answer": "x", "retrieved": [{"id": "d1", "text": "the gold"}]},
    "negative depth": {"id": "q000", "answer": "x", "k": -1},
    "deep": {"id": "q000", "answer": "x", "k": 1001},
    "depth as float": {"id": "q000", "answer": "x", "k": 1.5},
    "negative tokens": {"id": "q000", "answer": "x", "prompt_tokens": -5},
    "tokens beyond": {"id": "q000", "answer": "x", "prompt_tokens": 10**10},
    "negative seconds": {"id": "q000", "answer": "x", "seconds": -1.0},
    "seconds as text": {"id": "q000", "answer": "x", "seconds": "1"},
    "abstained as text": {"id": "q000", "answer": "x", "abstained": "no"},
    "abstained as number": {"id": "q000", "answer": "x", "abstained": 1},
    "rules as text": {"id": "q000", "answer": "x", "rules": ["a leads to b"]},
    "rule with more": {"id": "q000", "answer": "x", "rules": [{"head": "a", "body": "b", "confidence": 1}]},
    "101 rules": {"id": "q000", "answer": "x", "rules": [{"head": "a", "body": "b"}] * 101},
    "evidence of three": {"id": "q000", "answer": "x", "evidence": [["p", 1, 2]]},
    "negative sentence": {"id": "q000", "answer": "x", "evidence": [["p", -1]]},
    "triple of two": {"id": "q000", "answer": "x", "triples": [["a", "b"]]},
}


@pytest.mark.parametrize("name", LINES)
def test_a_hostile_line_is_refused(name, write):
    path = write()
    with (path / "predictions" / f"{TASK}.jsonl").open("a") as file:
        file.write(json.dumps(LINES[name]) + "\n")
    assert f"predictions/{TASK}.jsonl, line 201, key " in refused(path)


@pytest.mark.parametrize(
    "line",
    [b"\n", b"null\n", b"[]\n", b'"q"\n', b"{\n", b'{"id": "q", "answer": "\xff"}\n', b"[" * 100_000 + b"\n",
     b'{"id": "q", "answer": "x", "seconds": NaN}\n', b'{"id": "q", "answer": "x", "seconds": Infinity}\n',
     b'{"id": "q", "answer": "x", "seconds": -Infinity}\n', b'{"id": "q", "answer": "x", "seconds": 1e999}\n',
     b'{"id": "q", "answer": "\\ud800"}\n', b'{"id": "\\udfff", "answer": "x"}\n', b"\x00" * 1000 + b"\n",
     b'{"id": "q000", "answer": "x"}\n', b" " * (LINE_BYTES + 5) + b"\n", b"1" * 100_000 + b"\n",
     b'{"id": "q", "answer": "x"} {"id": "r", "answer": "x"}\n', b'<?xml version="1.0"?><!DOCTYPE a>\n',
     b'{"id": "q", "prompt_tokens": ' + b"9" * 5000 + b', "answer": "x"}\n'],
)  # fmt: skip
def test_a_line_that_is_no_line_is_refused(line, write):
    path = write()
    with (path / "predictions" / f"{TASK}.jsonl").open("ab") as file:
        file.write(line)
    refused(path)


JUNK = (
    None,
    True,
    -1,
    10**400,
    0.1,
    float("nan"),
    float("inf"),
    "",
    "a" * 5000,
    "\ud800",
    [],
    [[]],
    [{}],
    {},
    {"a": []},
    [None] * 600,
    ["a" * 501],
)


def is_junk(field, value):
    """Whether a value is not allowed in a field; restated here, apart from the form."""
    text, count = isinstance(value, str), type(value) is int
    allowed = {
        "answer": text and len(value) <= 4000 and value.isascii(),
        "abstained": isinstance(value, bool),
        "calls": value is None or (count and 0 <= value <= 10**9),
        "seconds": value is None or (type(value) in (int, float) and 0 <= value <= 1e9),
    }
    allowed["confidence"] = value is None or (type(value) in (int, float) and -1e9 <= value <= 1e9)
    allowed["k"] = allowed["prompt_tokens"] = allowed["completion_tokens"] = allowed["calls"]
    allowed["cost"] = allowed["seconds"]
    allowed |= dict.fromkeys(("retrieved", "rules", "evidence", "triples"), value is None or value == [])
    return not allowed[field]


# id has tests of its own: an unknown or repeated one is refused for what it is
PLANTED = [(field, at) for field in sorted(set(Prediction.model_fields) - {"id"}) for at in range(len(JUNK))]
PLANTED = [(field, at) for field, at in PLANTED if is_junk(field, JUNK[at])]


@pytest.mark.parametrize(("field", "at"), PLANTED)
def test_a_planted_value_is_refused_for_what_it_is(field, at, write, key):
    """The line is of a known question and right but for one field; the reason names the line and the field."""
    path = write()
    file = path / "predictions" / f"{TASK}.jsonl"
    lines = file.read_text().splitlines()
    number = random.Random(f"{field} {at}").randrange(len(lines))
    lines[number] = json.dumps({**json.loads(lines[number]), field: JUNK[at]})
    file.write_text("\n".join(lines) + "\n")
    reason = refused(path)
    assert f"line {number + 1}" in reason
    assert f"key {field}" in reason or "JSON" in reason  # numbers and characters that JSON has not end the parsing


CARD_JUNK = (None, True, -1, 0.5, 10**400, float("nan"), "", " a", "a\u202eb", "a" * 1001, [], ["a"], {}, {"a": "b"})
OPTIONAL = ("generator", "parameters", "revision", "retriever", "code", "training_data", "contamination", "scorer")
PLANTED_IN_CARDS = [
    (field, at)
    for field in ("name", "team", "method", "package", *OPTIONAL)
    for at in range(len(CARD_JUNK))
    if not (field in OPTIONAL and CARD_JUNK[at] is None)
]


@pytest.mark.parametrize(("field", "at"), PLANTED_IN_CARDS)
def test_a_planted_value_in_the_card_is_refused_for_what_it_is(field, at, write):
    path = write()
    card = json.loads((path / "submission.json").read_text())
    (path / "submission.json").write_text(json.dumps({**card, field: CARD_JUNK[at]}))
    reason = refused(path)
    assert reason.startswith(f"submission.json, key {field}") or "JSON" in reason


def test_there_are_at_least_300_hostile_submissions():
    """Each has one planted fault, which is the reason of its refusal."""
    assert len(PLANTED) + len(PLANTED_IN_CARDS) + len(FOLDERS) + len(CARDS) + len(LINES) >= 300


# --- the questions


def test_questions_must_be_those_of_the_task(write, key):
    first = next(iter(key.questions))
    for change, word in (
        (lambda lines: lines[1:], "lacks 1 questions"),
        (lambda lines: [*lines, json.dumps({"id": "other", "answer": "x"})], "unknown 1 questions"),
        (lambda lines: [line.replace(f'"{first}"', '"other"') for line in lines], "lacks 1 questions"),
        (lambda lines: [], "lacks 200 questions"),
    ):
        path = write(folder=word + str(id(change)))
        file = path / "predictions" / f"{TASK}.jsonl"
        file.write_text("\n".join(change(file.read_text().splitlines())))
        assert word in refused(path, verify)


def test_other_data_and_unknown_tasks_are_refused(write):
    path = write()
    card = json.loads((path / "submission.json").read_text())
    card["tasks"][TASK]["data"] = "0" * 16
    (path / "submission.json").write_text(json.dumps(card))
    assert "the predictions are for data 0000000000000000" in refused(path, verify)
    card["tasks"] = {"hellaswag": card["tasks"][TASK]}
    (path / "submission.json").write_text(json.dumps(card))
    (path / "predictions" / f"{TASK}.jsonl").rename(path / "predictions" / "hellaswag.jsonl")
    assert "no task 'hellaswag'" in refused(path, verify)


def test_passages_must_be_in_the_corpus(write):
    path = write(fields=lambda id, doc: {"retrieved": ["d0001", "made up"] if id == "q003" else ["d0001"]})
    assert "1 questions name passages that the task's corpus does not hold ('q003')" in refused(path, verify)


def test_a_refusal_by_the_command_is_quick_and_small(write):
    """As CI runs it: a process of its own; a refusal before any task is loaded."""
    path = write()
    link_out(path)
    code = (
        "import sys; from lm_eval_rag.cli import main; status = main(['verify', sys.argv[1]]);"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'));"
        "print(peak.split()[1], file=sys.stderr); sys.exit(status)"
    )  # not ru_maxrss, which counts the process that started it
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    verdict = json.loads(done.stdout)
    assert done.returncode == 1 and verdict["accepted"] is False and "no plain file" in verdict["reason"]
    assert int(done.stderr.splitlines()[-1]) < 500 * 1024
