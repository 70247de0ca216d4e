"""Killed at any moment and started again, a run gives the same scores and repeats no call that the journal holds."""

import json
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import time
from hashlib import sha256

import pytest
from asking import QUESTIONS, WIDTH, ask
from proxy import Chat, one_in_ten, scripted

KILLS = int(os.environ.get("LM_EVAL_RAG_KILLS", "10"))  # 50 by `make soak`
PATIENCE = 100  # seconds until something must have happened


def slow(prompt):
    """An answer that tells its prompt, after a while."""
    time.sleep(0.01)
    return sha256(prompt.encode()).hexdigest()


def stored(journal):
    """The replies of the server that the journal holds; none before it was made."""
    try:
        rows = sqlite3.connect(f"file:{journal}?mode=ro", uri=True).execute("SELECT reply FROM calls").fetchall()
    except sqlite3.OperationalError:
        return set()
    return {value for (reply,) in rows if isinstance(value := json.loads(reply), str)}


def wait(happened, process):
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end and is_alive(process)
        time.sleep(0.001)


def is_alive(process):
    return process.poll() is None if isinstance(process, subprocess.Popen) else process.is_alive()


@pytest.fixture(scope="module")
def start():
    """Starts :func:`asking.ask` in a process of its own, quickly: a server that has imported everything forks."""
    context = multiprocessing.get_context("forkserver")
    modules = ["asking", "lm_eval.models.openai_completions", "bm25s", "pyarrow", "pandas", "pydantic"]
    context.set_forkserver_preload(modules)  # pyarrow imports pandas late, which is half of a start

    def start(*arguments):
        process = context.Process(target=ask, args=[str(argument) for argument in arguments])
        process.start()
        return process

    return start


def test_killed_at_random_moments(start, tmp_path):
    journal, out, whole = tmp_path / "j.sqlite", tmp_path / "out.json", tmp_path / "whole.json"
    rng = random.Random(0)
    moments = sorted(rng.sample(range(QUESTIONS - 2 * WIDTH), KILLS))  # answers sent before each kill, repeated or not
    held = []  # after each kill: what the journal holds, and how often each prompt was sent
    with Chat(scripted(slow), one_in_ten(seed=2)) as server:
        for moment in moments:
            process = start(server.url, journal, out)
            wait(lambda moment=moment: server.answered.total() >= moment, process)
            time.sleep(rng.uniform(0, 0.03))
            process.kill()
            process.join()
            held.append((stored(journal), server.tries.copy()))
            assert not out.exists()
        process = start(server.url, journal, out)
        process.join(PATIENCE)
        answered, all_tries = {slow(prompt): prompt for prompt in server.tries}, server.tries.copy()
        good = server.answered.total()
        print(f"{KILLS} kills: {server.tries.total()} requests, {good} good replies for {QUESTIONS} prompts")
        start(server.url, tmp_path / "other.sqlite", whole).join(PATIENCE)
    answers, expected = json.loads(out.read_text()), json.loads(whole.read_text())
    assert [row[:3] for row in answers] == [row[:3] for row in expected]
    assert len(answers) == QUESTIONS and all(failure is None for _, failure, *_ in answers)
    for replies, tries in held:
        assert {answered[reply]: tries[answered[reply]] for reply in replies} == {
            answered[reply]: all_tries[answered[reply]] for reply in replies
        }  # no stored call was made again
    assert [len(replies) for replies, _ in held] == sorted(len(replies) for replies, _ in held)
    assert len(held[-1][0]) >= QUESTIONS // 4  # the runs went on where the ones before had been killed
    assert 0 <= good - QUESTIONS <= KILLS * WIDTH  # what is paid twice was in flight at a kill
    assert sum(journalled for *_, journalled in answers) == len(held[-1][0])


def test_the_command_line_killed_and_started_again(tmp_path, evaluate):
    journal, out = tmp_path / "j.sqlite", tmp_path / "out"
    questions = 64
    with Chat(scripted(slow)) as server:
        given = f"generator=local-chat-completions,gen_model=any,gen_num_concurrent=2,gen_base_url={server.url}"
        command = [sys.executable, "-m", "lm_eval", "run", "--tasks", "ruleqa_demo", "--model", "standard_rag"]
        command += ["--limit", str(questions), "--output_path", str(out), "--log_samples"]
        command += ["--model_args", f"{given},journal={journal}"]
        for moment in (12, 37):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait(lambda moment=moment: server.answered.total() >= moment, process)
            process.kill()
            process.wait()
        replies, tries = stored(journal), server.tries.copy()
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        answered = {slow(prompt): prompt for prompt in server.tries}
    assert done.returncode == 0, done.stderr[-2000:]
    (samples,) = [path.read_text().splitlines() for path in out.rglob("samples_*.jsonl")]
    records = [json.loads(line)["doc"]["_rag"] for line in samples]
    assert len(records) == questions and all(slow(record["prompt"]) == record["answer"] for record in records)
    assert replies and all(server.tries[answered[reply]] == tries[answered[reply]] for reply in replies)
    assert server.tries.total() - questions <= 2 * 8
    with Chat(scripted(slow)) as server:
        whole = evaluate("standard_rag", server.url, limit=questions)
    (results,) = [json.loads(path.read_text()) for path in out.rglob("results_*.json")]
    assert results["results"]["ruleqa_demo"] == whole["results"]["ruleqa_demo"]
    counts = results["config"]["rag"]["counts"]
    assert counts["unscored"] == 0 and counts["journalled"] >= len(replies)
