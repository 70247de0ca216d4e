"""The whole trace: every step of every question, joined to lm_eval's samples by id."""

import copy
import json
import pickle
import random
import subprocess
import sys

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import Messages
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


@pytest.mark.parametrize("left", [0.5, 0.9, 0.999])
def test_a_run_that_goes_on_after_a_kill_adds_lines_that_can_be_read(tmp_path, left):
    """The file then ends within a gzip member, and often within a line."""
    path = tmp_path / "t.jsonl.gz"
    draw = random.Random(0)
    steps = [Step("Generate", "".join(map(chr, draw.choices(range(32, 3000), k=3000))), "ü" * 40) for _ in range(40)]
    with TraceFile(path) as file:
        for number, step in enumerate(steps):
            file.write("task", Query(f"before{number}", "q"), Trace((step,)))
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    killed = read_trace(path)
    assert 10 < len(killed) < 40
    assert [line["steps"][0]["request"] for line in killed] == [step.request for step in steps[: len(killed)]]
    with TraceFile(path) as file:
        file.write("task", Query("after", "q"), Trace(()))
    assert [line["id"] for line in read_trace(path)] == [*(line["id"] for line in killed), "after"]


def test_a_prompt_of_two_messages_is_written_and_copied(tmp_path):
    prompt = Messages("Be short.\nBe right.", "Who wrote it?\n\nAnswer:")
    with TraceFile(tmp_path / "t.jsonl.gz") as file:
        file.write("task", Query("a", "q"), Trace((Step("Generate", prompt, "Ada"),)))
    (line,) = read_trace(tmp_path / "t.jsonl.gz")
    assert line["steps"][0]["request"] == "Be short.\nBe right.\n\nWho wrote it?\n\nAnswer:"
    for same in (copy.copy(prompt), copy.deepcopy(prompt), pickle.loads(pickle.dumps(prompt))):
        assert (same, same.system, same.user) == (prompt, "Be short.\nBe right.", "Who wrote it?\n\nAnswer:")


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
