"""Methods that use log-probabilities, with a chat server, which gives none: they end, and name the proxy."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lm_eval_rag._register import method_of
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import Engine

NOTES = {
    "self_rag": "no log-probabilities: labels",
    "think_then_act": "no log-probabilities: stated confidence",
    "crp_rag": "no log-probabilities: sufficiency asked",
}


class Chat(BaseHTTPRequestHandler):
    """Says yes to everything, and proposes one final step."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        text = "Final: where Person0 Alba was born" if prompt.endswith("Next step:") else "Yes, the answer is Town0."
        reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", NOTES)
def test_with_a_chat_server(name, address, queries, corpus):
    given = {"generator": "local-chat-completions", "gen_base_url": address, "gen_model": "m", "k": 2}
    setup = read_arguments(name, method_of(name), given)
    setup.corpora.given = corpus
    results = Engine(setup.corpora, setup.generator, Journal(None)).run(setup.bound(), queries[:2])
    for answer, trace in results:
        assert trace.failure is None and trace.count("Loglikelihood") == 0
        assert NOTES[name] in answer.notes and answer.text == "Town0" and trace.count("Retrieve") == 1
