"""What interruptions, faults and slow replies cost: runs against a server on this machine, with requests counted.

    python scripts/bench_faults.py                 # all rows, about three minutes
    python scripts/bench_faults.py kills refusal   # some

Each row starts runs as processes of their own (``standard_rag``, chat requests, 8 at once), and kills or interrupts
them. The server answers from the prompt, so that every answer can be checked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PLACES = 8
RUN = """
import json, sys
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.standard_rag import standard_rag
url, journal, out, n = *sys.argv[1:4], int(sys.argv[4])
corpus = [Passage(f"d{i}", f"Person{i} visited Town{i % 7}.") for i in range(n)]
queries = [Query(f"q{i}", f"what does Person{i} visit ?") for i in range(n)]
spec = ModelSpec("local-chat-completions", {"base_url": url, "model": "any", "num_concurrent": 8, "timeout": 60})
print("started", flush=True)
results = run(standard_rag, queries, corpus=corpus, generator=LMGenerator(spec), journal=journal, k=2)
rows = [[trace.steps[-1].request, answer.text, trace.failure] for answer, trace in results]
open(out, "w").write(json.dumps(rows))
"""
Latency = Callable[[str, int], float]  # of a prompt and its place among all requests
Fault = Callable[[str, int], "tuple[int, dict[str, Any]] | None"]  # a status and a body in place of an answer


def answer_to(prompt: str) -> str:
    """What the server says."""
    return sha256(prompt.encode()).hexdigest()[:12]


def chat(content: str, finish: str = "stop") -> dict[str, Any]:
    """A reply of OpenAI's form."""
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}]}


class Server(ThreadingHTTPServer):
    """Answers by its prompt after a while, and counts: requests, and good replies that somebody took."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self, latency: Latency, fault: Fault = lambda prompt, nth: None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.latency, self.fault = latency, fault
        self.asked, self.good, self.lock = Counter[str](), Counter[str](), threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/chat/completions"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        server = self.server
        with server.lock:
            server.asked[prompt] += 1
            nth = server.asked.total()
        time.sleep(server.latency(prompt, nth))
        fault = server.fault(prompt, nth)
        status, body = fault or (200, chat(answer_to(prompt)))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        if fault is None:
            with server.lock:
                server.good[prompt] += 1

    def log_message(self, *arguments: Any) -> None:
        """Nothing on the terminal."""


class Runs:
    """Runs of one journal against one server."""

    def __init__(self, server: Server, folder: Path, questions: int) -> None:
        self.journal, self.out = folder / "journal.sqlite", folder / "out.json"
        self.server, self.questions = server, questions

    def start(self) -> subprocess.Popen[str]:
        """A run, from the moment at which its imports are done."""
        arguments = [self.server.url, str(self.journal), str(self.out), str(self.questions)]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        run = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored by a shell's jobs
        )
        assert run.stdout is not None
        run.stdout.readline()
        return run

    def kept(self) -> int:
        """Replies of the server in the journal."""
        try:
            rows = sqlite3.connect(f"file:{self.journal}?mode=ro", uri=True).execute("SELECT reply FROM calls")
            replies = [json.loads(reply) for (reply,) in rows]
        except sqlite3.OperationalError:  # no run has made it yet
            return 0
        return sum(isinstance(reply, dict) and "text" in reply for reply in replies)

    def answers_are_right(self) -> bool:
        """Whether every question has the server's answer to its prompt."""
        rows = json.loads(self.out.read_text(encoding="utf-8"))
        return len(rows) == self.questions and all(text == answer_to(prompt) and not f for prompt, text, f in rows)


def killed(folder: Path, faults: float) -> str:
    """150 prompts of 0.8 s, SIGKILL 15 times, then run to the end."""
    rng = random.Random(0)
    broken = (500, {"error": {"message": "injected"}})
    server = Server(lambda prompt, nth: 0.8, lambda prompt, nth: broken if rng.random() < faults else None)
    runs = Runs(server, folder, 150)
    for _ in range(15):
        before, run = server.asked.total(), runs.start()
        while server.asked.total() == before:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 1.6))  # after its first request
        run.kill()
        run.wait()
    kept, requests = runs.kept(), server.asked.total()
    runs.start().communicate()
    good = server.good.total()
    return (
        f"after 15 kills {kept} of 150 generations kept ({requests} requests); at the end {good} good replies for 150 "
        f"prompts, so {good - 150} paid twice; answers {'as they should be' if runs.answers_are_right() else 'WRONG'}"
    )


def hanging(folder: Path) -> str:
    """The third request hangs; SIGINT once nothing else is left to do."""
    server = Server(lambda prompt, nth: 60.0 if nth == 3 else 0.05)
    runs = Runs(server, folder, 100)
    run = runs.start()
    until = time.monotonic() + 30
    while runs.kept() < 99 and time.monotonic() < until:
        time.sleep(0.1)
    kept, began = runs.kept(), time.monotonic()
    run.send_signal(signal.SIGINT)
    said = run.communicate()[1].strip().splitlines()
    seconds = time.monotonic() - began
    return (
        f"{kept} of the other 99 replies in the journal after 6 s; SIGINT ends the run in {seconds:.1f} s ({said[-1:]})"
    )


def refusal(folder: Path) -> str:
    """24 good replies, then 403 for ever."""
    refused = (403, {"error": {"message": "no more"}})
    runs = Runs(Server(lambda prompt, nth: 0.05, lambda prompt, nth: refused if nth > 24 else None), folder, 100)
    run = runs.start()
    began = time.monotonic()
    run.communicate()
    return f"{runs.kept()} of 24 kept; the run ended {time.monotonic() - began:.1f} s after its start"


def slow_ones(folder: Path) -> str:
    """192 requests, 1 in 16 takes 6 s, the others 0.3 s."""

    def latency(prompt: str, nth: int) -> float:
        return 6.0 if int(answer_to(prompt), 16) % 16 == 0 else 0.3

    runs = Runs(Server(latency), folder, 192)
    run = runs.start()
    began = time.monotonic()
    run.communicate()
    ours = time.monotonic() - began
    prompts = [prompt for prompt, *_ in json.loads(runs.out.read_text(encoding="utf-8"))]
    began = time.monotonic()
    with ThreadPoolExecutor(PLACES) as pool:
        list(pool.map(lambda prompt: time.sleep(latency(prompt, 0)), prompts))
    pool_seconds = time.monotonic() - began
    slow = sum(latency(prompt, 0) > 1 for prompt in prompts)
    return f"{ours:.1f} s, a plain pool {pool_seconds:.1f} s ({slow} slow ones)"


def empty(folder: Path) -> str:
    """Empty text with ``content_filter`` or ``length``."""
    ends = {0: (200, chat("", "content_filter")), 1: (200, chat("", "length"))}
    server = Server(lambda prompt, nth: 0.0, lambda prompt, nth: ends.get(int(answer_to(prompt), 16) % 4))
    runs = Runs(server, folder, 60)
    runs.start().communicate()
    failures = Counter(str(failure)[:40] for *_, failure in json.loads(runs.out.read_text(encoding="utf-8")))
    return f"unscored with the reason: {dict(failures)}"


def two_runs(folder: Path) -> str:
    """Two runs at once on one journal, 100 prompts of 0.2 s."""
    server = Server(lambda prompt, nth: 0.2)
    first, second = Runs(server, folder, 100), Runs(server, folder, 100)
    second.out = folder / "second.json"
    processes = [runs.start() for runs in (first, second)]
    for process in processes:
        process.communicate()
    right = first.answers_are_right() and second.answers_are_right()
    return f"{server.asked.total()} requests for 100 prompts; answers {'as they should be' if right else 'WRONG'}"


ROWS: dict[str, Callable[[Path], str]] = {
    "kills": lambda folder: killed(folder, 0.0),
    "kills_with_faults": lambda folder: killed(folder, 0.1),
    "hanging": hanging,
    "refusal": refusal,
    "slow_ones": slow_ones,
    "empty": empty,
    "two_runs": two_runs,
}


def main() -> None:
    """Print a line a row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help="all by default")
    for name in parser.parse_args().rows or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {ROWS[name](Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
