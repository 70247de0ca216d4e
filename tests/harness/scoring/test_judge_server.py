"""Acc-LM through lm_eval, with the judge behind an OpenAI-compatible server that fails on one answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from datasets import Dataset
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from lm_eval_rag.harness.core.record import RagText
from lm_eval_rag.harness.plugin.task import RagTask


def data_and_check(text: str) -> tuple[dict[str, Any], str]:
    """What a prompt holds, read as a model would."""
    (line,) = (line for line in text.splitlines() if line.startswith("{"))
    (check,) = re.findall(r'with the value "([0-9a-f]{8})"', text)
    return json.loads(line), check


@contextmanager
def served(reply: Callable[[str], str | None]) -> Iterator[tuple[str, list[str]]]:
    """(URL, prompts met) of a chat server that answers by a function of the prompt; None is HTTP 500."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body["messages"][-1]["content"])
            said = reply(asked[-1])
            text = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]}).encode()
            self.send_response(500 if said is None else 200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.usefixtures("undescribed")
def test_through_a_chat_server_and_lm_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RuleQA-like task, judge behind an OpenAI-compatible server that fails on one answer: Acc-LM of the others."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    rows = [{"id": f"q{i}", "query": f"question {i}?", "answers": ["Teth"], "corpus": None} for i in range(6)]
    gives = ["Teth", "the town of Teth", "I don't know", "Varn", "break", "in Teth"]

    class Task(RagTask):
        def download(self, *args: Any, **kwargs: Any) -> None:
            self.dataset = {"test": Dataset.from_list(rows)}

    class Model(LM):  # type: ignore[misc]
        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            return [gives[request.doc_id] for request in requests]

        def loglikelihood(self, requests: list[Any]) -> Any:
            raise AssertionError

        loglikelihood_rolling = loglikelihood

    def reply(text: str) -> str | None:
        data, check = data_and_check(text)
        same = "Teth" in data["response"]
        return None if data["response"] == "break" else json.dumps({"check": check, "reason": "", "correct": same})

    config = {
        "task": "like_ruleqa", "test_split": "test", "doc_to_text": "{{query}}", "doc_to_target": "{{answers[0]}}",
        "output_type": "generate_until", "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8},
    }  # fmt: skip
    with served(reply) as (url, asked):
        judge = {"judge": "local-chat-completions", "judge_base_url": url, "judge_model": "m", "judge_max_retries": 1}
        for _ in range(2):
            task = Task(config={**config, "metadata": {"version": 1, **judge}})
            manager = TaskManager(include_defaults=False)
            found = simple_evaluate(model=Model(), tasks=[task], task_manager=manager, bootstrap_iters=0)
            scores = found["results"]["like_ruleqa"]
            assert scores["acc_lm,none"] == pytest.approx(3 / 5)  # two by the judge, one exact; one missing, one wrong
            assert scores["crag_score,none"] == pytest.approx((2 * 3 + 1) / 5 - 1)
            assert scores["em,none"] == pytest.approx(1 / 6)
            verdicts = [sample["doc"]["_judge"] for sample in found["samples"]["like_ruleqa"]]
            assert [v["rule"] for v in verdicts] == ["exact", "judge", "missing", "judge", "judge", "judge"]
            assert verdicts[4]["correct"] is None and "500" in verdicts[4]["why"]
    assert len(asked) == 1 + 4 + 1  # an easy item, what is open, and in the second run only what failed


@pytest.mark.usefixtures("undescribed")
def test_rationales_are_judged_through_lm_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``consistency=True``: the same server judges rationales; answers without one, and failed calls, are unscored."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    rows = [{"id": f"q{i}", "query": f"question {i}?", "answers": ["Teth"], "corpus": None} for i in range(4)]
    rationales = ["Teth is a town.", "Teth is a moon.", None, "break"]
    passages = [{"id": "a", "text": "Teth is a town by a lake.", "object": None}]

    class Task(RagTask):
        def download(self, *args: Any, **kwargs: Any) -> None:
            self.dataset = {"test": Dataset.from_list(rows)}

    class Model(LM):  # type: ignore[misc]
        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            return [
                RagText("Teth", {"passages": passages, "k": 1, "rationale": rationales[request.doc_id]})
                for request in requests
            ]

        def loglikelihood(self, requests: list[Any]) -> Any:
            raise AssertionError

        loglikelihood_rolling = loglikelihood

    def reply(text: str) -> str | None:
        data, check = data_and_check(text)
        rationale = data.get("rationale", "")  # the easy item that comes first has an answer
        return None if rationale == "break" else json.dumps({"check": check, "correct": "town" in rationale})

    config = {
        "task": "like_ruleqa", "test_split": "test", "doc_to_text": "{{query}}", "doc_to_target": "{{answers[0]}}",
        "output_type": "generate_until", "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8},
    }  # fmt: skip
    with served(reply) as (url, asked):
        judge = {"judge": "local-chat-completions", "judge_base_url": url, "judge_model": "m", "judge_max_retries": 1}
        task = Task(config={**config, "metadata": {"version": 1, "consistency": True, **judge}})
        manager = TaskManager(include_defaults=False)
        found = simple_evaluate(model=Model(), tasks=[task], task_manager=manager, bootstrap_iters=0)
    assert found["results"]["like_ruleqa"]["factual_consistency,none"] == pytest.approx(1 / 2)
    assert found["results"]["like_ruleqa"]["consistency_overlap,none"] == pytest.approx(1 / 3)  # town alone
    samples = found["samples"]["like_ruleqa"]
    assert [sample.get("factual_consistency") for sample in samples] == [1.0, 0.0, None, None]
    assert "500" in samples[3]["doc"]["_rag"]["grounding"]["why"]
    assert len(asked) == 1 + 3  # an easy item; all answers are exact: rationales alone are asked about
