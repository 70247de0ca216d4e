"""Generators behind an API: a real server, a proxy that fails one try in ten, servers that fail for good."""

import json
import logging
import socket
import sqlite3
import subprocess
import sys
import time

import pytest
from proxy import PASSING, Chat, forward, one_in_ten, scripted

from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.common.errors import UserError

TASK = "ruleqa_demo"
SLOW = {"gen_timeout": 60, "gen_num_concurrent": 2}  # a real model on a busy machine


def last_line(prompt):
    """Answers with the subject and date of the question, which are different for every question."""
    return " ".join(prompt.rpartition("Question:")[2].split()[1:4])


def samples_of(results):
    return {sample["doc"]["id"]: sample for sample in results["samples"][TASK]}


def answers_of(results):
    return {name: sample["doc"]["_rag"]["answer"] for name, sample in samples_of(results).items()}


def scores_of(results):
    scores = {name: value for name, value in results["results"][TASK].items() if "," in name}
    assert scores
    return scores


@pytest.fixture(scope="module")
def faultless(served, evaluate, little_llama):
    """rulerag_icl against the real server, without faults."""
    return evaluate("rulerag_icl", f"{served}/chat/completions", {"gen_model": str(little_llama), **SLOW}, limit=40)


def test_rulerag_runs_against_a_real_server(faultless):
    answers = answers_of(faultless)
    assert len(answers) == 40 and len(set(answers.values())) > 20  # the model reads its prompt
    for sample in samples_of(faultless).values():
        record = sample["doc"]["_rag"]
        assert record["failure"] is None and record["calls"]["Generate"] == 1
        assert record["passages"] and "\n" not in record["answer"]
        assert not record["rules"] or "leads to" in record["prompt"]
    assert any(sample["doc"]["_rag"]["rules"] for sample in samples_of(faultless).values())
    assert faultless["config"]["rag"]["counts"]["unscored"] == 0


def test_the_stock_model_runs_closed_book_against_a_real_server(served, evaluate, little_llama):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    results = simple_evaluate(
        model="local-chat-completions",
        model_args={"model": str(little_llama), "base_url": f"{served}/chat/completions"},
        tasks=[TASK],
        task_manager=TaskManager(include_defaults=False, include_path=str(tasks_folder())),
        limit=4,
        apply_chat_template=True,
    )
    scores = scores_of(results)
    assert 0 <= scores["em,none"] <= 1 and "crag_score,none" in scores
    assert not [name for name in scores if name.startswith("recall@")]  # nothing was retrieved: unscored, not 0
    assert all("_rag" not in sample["doc"] for sample in samples_of(results).values())


def test_faults_on_the_way_to_a_real_server_change_no_answer(served, faultless, evaluate, little_llama):
    with Chat(forward(f"{served}/chat/completions"), one_in_ten(seed=6)) as proxy:
        results = evaluate("rulerag_icl", proxy.url, {"gen_model": str(little_llama), **SLOW}, limit=40)
    assert set(proxy.faults) == {None, "429", "hold", "cut_in_the_middle", "malformed", "no_json", "an_error"}
    assert answers_of(results) == answers_of(faultless)
    assert scores_of(results) == scores_of(faultless)
    assert results["config"]["rag"]["unscored"] == []


def test_every_fault_heals_and_is_asked_again_only_as_often_as_needed(evaluate):
    kinds = dict.fromkeys(PASSING)

    def each_kind_once(prompt, nth):
        return kinds.popitem()[0] if nth == 1 and kinds else None

    with Chat(scripted(last_line), each_kind_once) as server:
        results = evaluate("standard_rag", server.url, limit=30)
    with Chat(scripted(last_line)) as server_without:
        wanted = evaluate("standard_rag", server_without.url, limit=30)
    assert set(server.faults) == {None, *PASSING}
    assert answers_of(results) == answers_of(wanted) and scores_of(results) == scores_of(wanted)
    assert sum(server.tries.values()) == 30 + len(PASSING)


def test_at_one_in_ten_no_question_is_lost(evaluate):
    with Chat(scripted(last_line), one_in_ten(seed=33)) as server:
        results = evaluate("standard_rag", server.url, limit=200)
    failed = sum(count for fault, count in server.faults.items() if fault)
    assert 0.05 < failed / sum(server.tries.values()) < 0.15 and set(server.faults) == {None, *PASSING}
    assert len(answers_of(results)) == 200 and all(answers_of(results).values())
    assert results["config"]["rag"]["counts"] == {
        "questions": 200, "unscored": 0, "calls": 200, "journalled": 0, "Retrieve": 200, "Generate": 200,
    }  # fmt: skip


def test_what_fails_for_ever_stays_unscored_and_is_named(evaluate, tmp_path, caplog):
    journal = {"journal": str(tmp_path / "j.sqlite")}
    broken = []

    def for_ever(prompt, nth):
        return "500" if prompt in broken else None

    with Chat(scripted(last_line), for_ever) as server:
        whole = evaluate("standard_rag", server.url, limit=12)
        chosen = sorted(samples_of(whole))[2:11:4]
        broken += [samples_of(whole)[name]["doc"]["_rag"]["prompt"] for name in chosen]
        server.tries.clear()
        with caplog.at_level(logging.WARNING, logger="lm_eval_rag"):
            partly = evaluate("standard_rag", server.url, {**journal, "gen_max_retries": 3}, limit=12)
        assert [server.tries[prompt] for prompt in broken] == [3, 3, 3]
        broken.clear()
        server.tries.clear()
        again = evaluate("standard_rag", server.url, {**journal, "gen_max_retries": 3}, limit=12)
    assert sorted(partly["config"]["rag"]["unscored"]) == chosen and again["config"]["rag"]["unscored"] == []
    for name in chosen:
        assert f"Question {name} stays unscored: generator, try 3 of 3: 500 " in caplog.text
        sample = samples_of(partly)[name]
        assert "injected" in sample["doc"]["_rag"]["failure"] and sample["metrics"] == []
    kept = [sample for name, sample in samples_of(partly).items() if name not in chosen]
    assert partly["config"]["rag"]["counts"]["unscored"] == 3 and len(kept) == 9
    for metric in ("em", "token_f1", "recall@10"):  # means over what is scored: a failure is no wrong answer
        mean = sum(sample[metric] for sample in kept) / len(kept)
        assert partly["results"][TASK][f"{metric},none"] == pytest.approx(mean)
    assert sum(server.tries.values()) == 3 and again["config"]["rag"]["counts"]["journalled"] == 9 + 12
    assert scores_of(again) == scores_of(whole)


def test_all_unscored_is_no_crash(evaluate):
    with Chat(scripted(last_line), lambda prompt, nth: "500") as server:
        results = evaluate("standard_rag", server.url, {"gen_max_retries": 1}, limit=5)
    assert len(results["config"]["rag"]["unscored"]) == 5 and "em,none" not in results["results"][TASK]


def test_a_refusal_ends_the_run_at_once(evaluate, tmp_path):
    journal = tmp_path / "j.sqlite"
    calm = 32  # so many are answered, then the key is refused

    def later(prompt, nth):
        return "401" if len(server.tries) > calm else None

    refused = pytest.raises(UserError, match=r"refused the request: 401 .*OPENAI_API_KEY")
    with Chat(scripted(last_line), later) as server, refused as raised:
        evaluate("standard_rag", server.url, {"journal": str(journal)}, limit=120)
    assert calm < sum(server.tries.values()) <= calm + 2 * 8 and "\n" not in str(raised.value)
    stored = sqlite3.connect(journal).execute("SELECT COUNT(*) FROM calls WHERE reply LIKE '\"%'").fetchone()[0]
    assert stored == calm  # what was answered is not lost


def test_replies_that_are_on_their_way_when_a_refusal_arrives_are_kept(evaluate, tmp_path, monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.generators.server.MOMENT", 30)  # 0.5 s is short on a busy machine
    journal = tmp_path / "j.sqlite"

    def slow(prompt):
        time.sleep(0.2)
        return last_line(prompt)

    def later(prompt, nth):
        return "401" if len(server.tries) > 7 else None

    with Chat(scripted(slow), later) as server, pytest.raises(UserError, match="refused the request: 401"):
        evaluate("standard_rag", server.url, {"journal": str(journal)}, limit=120)
    stored = sqlite3.connect(journal).execute("SELECT COUNT(*) FROM calls WHERE reply LIKE '\"%'").fetchone()[0]
    assert stored == 7 and 8 <= server.tries.total() <= 2 * 8  # few were sent before the run ended


def test_a_server_that_nobody_started_ends_the_run(evaluate):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1/chat/completions"
        began = time.monotonic()
        with pytest.raises(UserError, match=r"cannot be reached.*Check gen_base_url="):
            evaluate("standard_rag", url, limit=50)
    assert time.monotonic() - began < 10


def test_a_wait_that_the_server_asks_for_is_kept(evaluate, monkeypatch):
    from proxy import FAULTS, status

    monkeypatch.setitem(FAULTS, "later", status(429, **{"Retry-After": "1"}))
    with Chat(scripted(last_line), lambda prompt, nth: "later" if nth == 1 else None) as server:
        began = time.monotonic()
        results = evaluate("standard_rag", server.url, limit=4)
    assert time.monotonic() - began >= 1 and all(answers_of(results).values())


def test_the_key_reaches_the_server_and_nothing_else(evaluate, tmp_path, monkeypatch, caplog):
    from lm_eval.loggers import EvaluationTracker

    key = "sk-very-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    out = tmp_path / "out"
    tracker = EvaluationTracker(output_path=str(out))
    options = {"generator": "openai-chat-completions", "limit": 6, "evaluation_tracker": tracker}
    with caplog.at_level(logging.DEBUG), Chat(scripted(last_line), one_in_ten(seed=5)) as server:
        results = evaluate("rulerag_icl", server.url, {"journal": str(tmp_path / "j.sqlite")}, **options)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name=TASK, samples=samples[TASK])
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {key}"}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in written} >= {".json", ".jsonl", ".sqlite"}
    assert not [path for path in written if key.encode() in path.read_bytes()]
    assert key not in caplog.text


def lm_eval(*arguments):
    command = [sys.executable, "-m", "lm_eval", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_exit_code_tells_of_unscored_questions(tmp_path):
    out = tmp_path / "out"
    arguments = "generator=local-chat-completions,gen_model=any,gen_max_retries=1,journal=off,gen_base_url="

    with Chat(scripted(last_line), lambda prompt, nth: "500" if len(server.tries) == 3 else None) as server:
        done = lm_eval(
            "--tasks", TASK, "--limit", "6", "--model", "standard_rag",
            "--model_args", arguments + server.url, "--output_path", str(out), "--log_samples",
        )  # fmt: skip
    (samples,) = [path.read_text().splitlines() for path in out.rglob("samples_*.jsonl")]
    failed = [doc["id"] for doc in (json.loads(line)["doc"] for line in samples) if doc["_rag"]["failure"]]
    assert done.returncode == 3, done.stderr[-2000:]
    assert len(failed) == 1 and f"1 questions stay unscored: {failed[0]}." in done.stderr.splitlines()[-1]
    (results,) = [json.loads(path.read_text()) for path in out.rglob("results_*.json")]
    assert len(samples) == 6 and results["config"]["rag"]["unscored"] == failed


def test_the_exit_code_of_a_refusal_and_its_one_line():
    arguments = "generator=local-chat-completions,gen_model=any,journal=off,gen_base_url="
    with Chat(scripted(last_line), lambda prompt, nth: "401") as server:
        done = lm_eval(
            "--tasks", TASK, "--limit", "6", "--model", "standard_rag", "--model_args", arguments + server.url
        )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("lm-eval-rag: The generator's server refused the request: 401")
