"""The whole trace: every step of every question, joined to lm_eval's samples by id."""

import json
import subprocess
import sys

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Query, Step, Trace
from lm_eval_rag.harness.plugin.trace_file import TraceFile, read_trace


def test_lines_are_added_as_questions_end(tmp_path):
    path = tmp_path / "new" / "t.jsonl.gz"
    steps = (Step("Retrieve", "q", "d1 d2", k=2, found=2), Step("Generate", "Prompt ü", "A\ud83d", prompt_tokens=3))
    with TraceFile(path) as file:
        file.write("task", Query("a", "q"), Trace(steps))
    with TraceFile(path) as file:  # a run that goes on
        file.write("task", Query("b", "q", repeat=1), Trace((), failure="no"))
    first, second = read_trace(path)
    assert first["id"] == "a" and first["failure"] is None
    assert first["steps"][0] == {"ask": "Retrieve", "request": "q", "reply": "d1 d2", "k": 2, "found": 2}
    assert first["steps"][1]["request"] == "Prompt ü" and first["steps"][1]["prompt_tokens"] == 3
    assert (second["id"], second["repeat"], second["failure"], second["steps"]) == ("b", 1, "no", [])


def test_without_a_path_nothing_is_written(tmp_path):
    with TraceFile(None) as file:
        file.write("task", Query("a", "q"), Trace())
    assert list(tmp_path.iterdir()) == []


def test_where_it_cannot_be_written_it_says_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"trace=.*cannot be written"), TraceFile(tmp_path / "file" / "t.gz"):
        pass


def test_it_lies_beside_the_samples(tmp_path):
    command = [sys.executable, "-m", "lm_eval", "run", "--tasks", "ruleqa_demo", "--limit", "3", "--log_samples"]
    command += ["--model", "rule_vote", "--model_args", "journal=off", "--output_path", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    (samples,) = tmp_path.rglob("samples_*.jsonl")
    (trace,) = tmp_path.rglob("trace_*.jsonl.gz")
    ids = [json.loads(line)["doc"]["id"] for line in samples.read_text().splitlines()]
    lines = read_trace(trace)
    assert sorted(line["id"] for line in lines) == sorted(ids) and len(ids) == 3
    assert all({step["ask"] for step in line["steps"]} >= {"Retrieve", "MatchRules"} for line in lines)
