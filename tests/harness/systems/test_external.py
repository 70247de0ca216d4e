"""``external``: a function or an endpoint of the user's, asked as any method, and each way in which it can go wrong."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from lm_eval_rag import Answer, Passage, Query, UserError, run
from lm_eval_rag.harness.core.record import record
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.systems.exchange import Question, Reply, read_reply, schema
from lm_eval_rag.methods.external import external

DOCUMENTS = [Passage("a", "Ada was born in Vale."), Passage("b", "Bo was born in Moor."), Passage("c", "It rains.")]
QUESTIONS = ["where was Ada born?", "where was Bo born?", "why?"]

FUNCTIONS = """
import asyncio, sys, threading, time
from lm_eval_rag import Query

def plain(question):
    return question.upper()

async def slow(question):
    await asyncio.sleep(0.01)
    return {"answer": question[::-1], "passages": [{"id": "b", "score": 2}, {"text": "Ada was born in Vale."}]}

def whole(query: Query):
    return {"answer": f"{query.id} {query.time}", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}

def many(questions):
    return [f"{question.upper()} of {len(questions)}" for question in questions]

def few(questions):
    return ["one"]

def silent(question):
    return {"answer": "x", "passages": []}

def stranger(question):
    return {"answer": "x", "passages": [{"id": "zzz"}, {"text": "Nobody wrote this."}, {"id": "c"}, {"id": "c"}]}

def raising(question):
    if "Bo" in question:
        raise ValueError("no Bo here")
    return "fine"

def misspelling(question):
    return {"answer": "x", "Passages": [{"id": "b"}], "context": "y"}

def leaving(question):
    sys.exit(3)

async def leaving_async(question):
    sys.exit(3)

def wrong(question):
    return {"text": "x"}

def abstaining(question):
    return {"answer": "I don't know", "abstained": True}

def sure(question):
    return {"answer": "x", "confidence": len(question) if "why" in question else float("nan")}

def sleeping(question):
    time.sleep(0.2)
    return "late"

constant = 3
"""


@pytest.fixture
def system(tmp_path: Path) -> Path:
    file = tmp_path / "system.py"
    file.write_text(FUNCTIONS)
    return file


def ask(file: Path | None, name: str = "", questions: Any = QUESTIONS, **options: Any) -> list[tuple[Answer, Any]]:
    function = {"function": f"{file}:{name}"} if file else {}
    return run("external", questions, corpus=options.pop("corpus", DOCUMENTS), **function, **options)


def test_a_function_of_a_text(system: Path) -> None:
    results = ask(system, "plain")
    assert [answer.text for answer, _ in results] == [question.upper() for question in QUESTIONS]
    for answer, trace in results:
        assert record(answer, trace)["passages"] is None  # it does not say, so retrieval is not scored
        assert trace.failure is None and [step.ask for step in trace.steps] == ["AskSystem"]


def test_passages_by_id_and_by_text_are_those_of_the_corpus(system: Path) -> None:
    ((answer, trace), *_) = ask(system, "slow")
    assert [(p.id, p.text, p.score) for p in answer.passages] == [
        ("b", "Bo was born in Moor.", 2.0),
        ("a", "Ada was born in Vale.", 0.0),
    ]
    assert answer.notes == () and record(answer, trace)["k"] == 2


def test_a_function_of_a_query_and_its_usage(system: Path) -> None:
    ((answer, trace),) = ask(system, "whole", [Query("q7", "when?", time="2014-01-02")])
    assert answer.text == "q7 2014-01-02"
    kept = record(answer, trace)
    assert (kept["prompt_tokens"], kept["completion_tokens"]) == (7, 2) and kept["seconds"] >= 0


def test_questions_come_in_batches(system: Path) -> None:
    questions = [f"q {i}" for i in range(10)]
    texts = [answer.text.split(" of ") for answer, _ in ask(system, "many", questions, batch=4, concurrency=1)]
    assert [text for text, _ in texts] == [question.upper() for question in questions]
    assert Counter(size for _, size in texts) == {"4": 8, "2": 2}
    ((_, trace), *_) = ask(system, "few", batch=2)
    assert "must return a list of as many replies" in str(trace.failure)


def test_none_retrieved_is_no_passage_and_not_unscored(system: Path) -> None:
    ((answer, trace), *_) = ask(system, "silent")
    assert record(answer, trace)["passages"] == [] and answer.passages == ()


def test_passages_that_the_corpus_lacks_are_noted(system: Path) -> None:
    ((answer, _), *_) = ask(system, "stranger")
    assert [(p.id, p.text) for p in answer.passages] == [
        ("zzz", ""), ("passage 2", "Nobody wrote this."), ("c", "It rains."),
    ]  # fmt: skip
    assert answer.notes == ("passage not in the corpus",)
    ((answer, _),) = ask(system, "stranger", [Query("q", "why?")], corpus=None)
    assert answer.notes == ()  # there is none to compare with


def test_a_document_that_was_cut_stands_for_its_passages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A system that indexed whole documents names them; the corpus has ``long#0``, ``long#1``, ..."""
    file = tmp_path / "whole.py"
    file.write_text("def answer(question):\n    return {'answer': 'x', 'passages': [{'id': 'long'}, {'id': 'b'}]}\n")
    documents = [Passage("a", "An a."), Passage("long#0", "Its first part."), Passage("long#1", "Its second.")]
    ((answer, _),) = run("external", ["why?"], corpus=[*documents, Passage("b", "A b.")], function=f"{file}:answer")
    assert [passage.id for passage in answer.passages] == ["long#0", "long#1", "b"] and answer.notes == ()
    assert "not in the corpus" not in caplog.text
    run("external", ["why?", "who?"], corpus=documents, function=f"{file}:answer")
    assert caplog.text.count("such as 'b'. Ids of the corpus look like 'a'") == 1, "said once"


def test_the_seconds_are_the_functions_own(tmp_path: Path) -> None:
    """Eight questions in one thread: none is charged for the time in which it waited for the others."""
    file = tmp_path / "slow.py"
    file.write_text("import time\ndef answer(question):\n    time.sleep(0.05)\n    return 'x'\n")
    results = run("external", [f"q{i}" for i in range(8)], function=f"{file}:answer", concurrency=8)
    assert all(0.04 < trace.steps[0].seconds < 0.3 for _, trace in results)


def test_one_question_fails_and_the_others_are_answered(system: Path) -> None:
    results = ask(system, "raising")
    assert [answer.text for answer, _ in results] == ["fine", "", "fine"]
    line = FUNCTIONS.splitlines().index('        raise ValueError("no Bo here")') + 1
    failure = f"the function raised ValueError: no Bo here ({system.name}, line {line})"
    assert [trace.failure for _, trace in results] == [None, failure, None]


@pytest.mark.parametrize("name", ["leaving", "leaving_async"])
def test_sys_exit_fails_its_question_and_not_the_run(system: Path, name: str) -> None:
    line = FUNCTIONS[: FUNCTIONS.index(f"def {name}(")].count("\n") + 2
    failures = [trace.failure for _, trace in ask(system, name)]
    assert failures == [f"the function called sys.exit ({system.name}, line {line})"] * 3


def test_keys_that_are_not_read_are_said_once(system: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert all(trace.failure is None for _, trace in ask(system, "misspelling"))
    (message,) = caplog.messages
    assert message.startswith("The system's reply has 'Passages', 'context', which is not read.")


def test_a_reply_of_another_form(system: Path) -> None:
    ((_, trace), *_) = ask(system, "wrong")
    assert "answer: Field required" in str(trace.failure) and "must be a text" in str(trace.failure)


def test_abstention(system: Path) -> None:
    ((answer, _), *_) = ask(system, "abstaining")
    assert answer.abstained


def test_a_confidence_is_kept_and_must_be_a_number(system: Path) -> None:
    results = ask(system, "sure")
    assert [answer.confidence for answer, _ in results] == [None, None, 4]
    assert "the confidence nan. Give a finite number" in str(results[0][1].failure)
    assert record(*results[2])["confidence"] == 4 and "confidence" not in record(*ask(system, "plain")[0])


def test_a_call_that_takes_too_long(system: Path) -> None:
    ((_, trace),) = ask(system, "sleeping", ["why?"], timeout=0.02)
    assert trace.failure == "the function took longer than timeout=0.02 seconds"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either function=FILE.py:NAME or url="),
        ({"function": "a.py:b", "url": "http://x"}, "not both"),
        ({"function": "nowhere.py:answer"}, "there is no file nowhere.py"),
        ({"function": "no.such.module:answer"}, "No module named 'no'"),
        ({"function": "answer"}, "give FILE.py:NAME"),
        ({"function": "{file}:plian"}, "Did you mean 'plain'"),
        ({"function": "{file}:constant"}, "Unknown function"),
        ({"function": "{broken}:answer"}, "its code ends with ZeroDivisionError: division by zero"),
        ({"url": "localhost:8000"}, "give http://HOST/PATH"),
        ({"url": "http://127.0.0.1:9/", "key_env": "NO_SUCH_KEY_HERE"}, "this environment variable is not set"),
        ({"url": "http://127.0.0.1:9/", "batch": 0}, "batch=0"),
    ],
)
def test_bad_input_ends_the_run_in_one_line(system: Path, tmp_path: Path, options: Any, message: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    named = {"{file}": str(system), "{broken}": str(tmp_path / "broken.py")}
    for name, value in options.items():
        for short, path in named.items():
            if isinstance(value, str):
                options[name] = value = value.replace(short, path)
    with pytest.raises(UserError, match=re.escape(message)) as error:
        ask(None, **options)
    assert "\n" not in str(error.value)


def test_the_journal_keeps_every_reply(system: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    ask(system, "raising", journal=journal)
    again = ask(system, "raising", journal=journal)
    assert [[step.journalled for step in trace.steps] for _, trace in again] == [[True], [], [True]]
    system.write_text(FUNCTIONS + "\n# another system\n")
    third = ask(system, "raising", journal=journal)
    assert not any(step.journalled for _, trace in third for step in trace.steps)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests.append((self.path, body, dict(self.headers)))
            server.running += 1
            server.most = max(server.most, server.running)
        status, value = server.reply(body, len(server.requests))
        time.sleep(server.pause)
        with server.lock:
            server.running -= 1
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def server() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as opened:
        opened.daemon_threads = True
        known: Any = opened
        known.lock, known.requests, known.running, known.most, known.pause = threading.Lock(), [], 0, 0, 0.0
        known.reply = lambda body, nth: (200, {"answer": body["question"], "passages": [{"id": "a"}]})
        threading.Thread(target=opened.serve_forever, args=(0.02,), daemon=True).start()
        known.url = f"http://127.0.0.1:{opened.server_port}"
        yield known
        opened.shutdown()


def test_an_endpoint_gets_the_documented_request(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    ((answer, _),) = ask(None, questions=[Query("q1", "where?", "2014")], url=f"{server.url}/ask", key_env="MY_KEY")
    ((path, body, headers),) = server.requests
    assert (path, body) == ("/ask", {"id": "q1", "question": "where?", "time": "2014"})
    TypeAdapter(Question).validate_json(json.dumps(body), strict=True)
    assert headers["Authorization"] == "Bearer sesame"
    assert (answer.text, [passage.id for passage in answer.passages]) == ("where?", ["a"])


def test_an_endpoint_that_is_a_chat_server(server: Any) -> None:
    server.reply = lambda body, nth: (
        200,
        {"choices": [{"message": {"content": "Vale"}}], "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
    )
    ((answer, trace),) = ask(None, questions=["where?"], url=f"{server.url}/v1/chat/completions", model="mine")
    ((_, body, _),) = server.requests
    assert body == {"model": "mine", "messages": [{"role": "user", "content": "where?"}]}
    asked = "2024-03-13T10:19:56-07:00"
    queries = [
        Query("q1", "who leads?", asked),
        Query("q2", "who leads?", "2014"),
        Query("q3", "who leads?", "2014-03-13"),
    ]
    ask(None, questions=queries, url=f"{server.url}/v1/chat/completions", concurrency=1)
    told = [body["messages"][0]["content"] for _, body, _ in server.requests[1:]]
    assert told == [f"Asked on: {asked}\nwho leads?", "who leads?", "who leads?"]
    assert answer.text == "Vale" and trace.steps[0].prompt_tokens == 5 and record(answer, trace)["passages"] is None


def test_as_many_requests_at_once_as_are_allowed(server: Any) -> None:
    server.pause = 0.03
    ask(None, questions=[f"q{i}" for i in range(12)], url=server.url, concurrency=3)
    assert server.most == 3 and len(server.requests) == 12


def test_a_request_that_fails_is_made_again(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_eval_rag.harness.systems.opening.WAIT", 0.01)
    tries: Counter[str] = Counter()

    def reply(body: Any, nth: int) -> tuple[int, Any]:
        tries[body["id"]] += 1
        return (500, "busy") if tries[body["id"]] < 3 else (200, "fine")

    server.reply = reply
    results = ask(None, url=server.url, concurrency=1)
    assert [answer.text for answer, _ in results] == ["fine"] * 3 and set(tries.values()) == {3}
    server.reply = lambda body, nth: (500, "busy") if body["id"] == "q1" else (200, "fine")
    results = ask(None, url=server.url, concurrency=1, tries=2)
    assert [answer.text for answer, _ in results] == ["fine", "", "fine"]
    assert str(results[1][1].failure).startswith("system, try 2 of 2: 500")


@pytest.mark.parametrize(("status", "words"), [(401, "refused the request"), (404, "refused the request")])
def test_a_refusal_ends_the_run(server: Any, status: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    server.reply = lambda body, nth: (status, "the key sesame is wrong")
    with pytest.raises(UserError, match=f"The system's server {words}.*Check url=") as error:
        ask(None, url=server.url, key_env="MY_KEY")
    assert "sesame" not in str(error.value)


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_eval_rag.harness.systems.opening.WAIT", 0.01)
    with pytest.raises(UserError, match="The system's server cannot be reached"):
        ask(None, url="http://127.0.0.1:9/", tries=2)


@pytest.mark.parametrize("value", ["x", {"answer": "x"}, {"answer": "x", "passages": None, "extra": 1}])
def test_replies_of_the_documented_form_are_read(value: Any) -> None:
    assert read_reply(value) == Reply("x")


def test_the_documented_schemas_are_the_real_ones() -> None:
    page = (Path(__file__).parents[3] / "docs" / "your_system.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    assert [schema(Question), schema(Reply)] == blocks[-2:]
    for example, kind in zip(blocks[:2], (Question, Reply), strict=True):
        TypeAdapter(kind).validate_json(json.dumps(example), strict=True)


def test_a_running_loop_is_no_hindrance(system: Path) -> None:
    async def notebook() -> list[tuple[Answer, Any]]:
        return ask(system, "slow")

    assert len(asyncio.run(notebook())) == 3


def test_a_longer_timeout_goes_on_in_the_same_journal(system: Path) -> None:
    """What says how calls are made is no part of the run's fingerprint; what may change an answer is."""

    def fingerprint(**parameters: Any) -> str:
        return read_arguments("external", external, {"function": f"{system}:plain", **parameters}).fingerprint

    first = fingerprint()
    assert fingerprint(timeout=900.0) == fingerprint(concurrency=2) == fingerprint(tries=1) == first
    assert len({first, fingerprint(batch=2), fingerprint(model="other")}) == 3
