"""OpenAI-compatible chat servers: one answers by a function, one is a proxy before a real one; both fail as told."""

import http.client
import json
import random
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PATH = "/v1/chat/completions"
HOLD = 1.6  # seconds a request is held, longer than the clients' time-out of 1


def prompt_of(body):
    """The text of a request's last message."""
    return body["messages"][-1]["content"]


def scripted(answer):
    """A reply by a function of the prompt."""
    return lambda body: {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": answer(prompt_of(body))}}]
    }


def forward(url):
    """A reply by a real server."""
    parts = urlsplit(url)

    def reply(body):
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        connection.request("POST", parts.path, json.dumps(body), {"Content-Type": "application/json"})
        return json.load(connection.getresponse())

    return reply


# --- what a server does in place of answering


def status(code, **headers):
    return lambda handler: handler.answer(code, b'{"error": {"message": "injected"}}', headers)


def text(data):
    return lambda handler: handler.answer(200, data, {})


def hold(handler):
    time.sleep(HOLD)
    cut(handler)


def cut(handler):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def cut_in_the_middle(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')
    handler.close_connection = True


FAULTS = {
    "429": status(429),
    "500": status(500),
    "503": status(503),
    "hold": hold,
    "cut": cut,
    "cut_in_the_middle": cut_in_the_middle,
    "malformed": text(b'{"choices": [{"index": 0, "message": {"content": "wro'),
    "no_json": text(b"<html>wrong</html>"),
    "no_choices": text(b'{"choices": []}'),
    "no_text": text(b'{"choices": [{"index": 0, "message": {"content": null}}]}'),
    "an_error": text(b'{"error": {"message": "wrong"}}'),
    "401": status(401),
}
PASSING = tuple(name for name in FAULTS if name != "401")  # what another try heals


def one_in_ten(seed):
    """A choice of faults: one request in ten fails, by a seed and its place among all requests."""
    rng = random.Random(seed)
    return lambda prompt, nth: rng.choice(PASSING) if rng.random() < 0.1 else None


class Chat(ThreadingHTTPServer):
    """A server on a free port of 127.0.0.1.

    Args:
        reply: Makes the JSON of an answer from that of a request.
        fault: Names the fault for the nth try (from 1) of a prompt, or None.
    """

    daemon_threads, request_queue_size = True, 64

    def __init__(self, reply, fault=lambda prompt, nth: None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.fault = reply, fault
        self.tries, self.answered, self.faults, self.headers = Counter(), Counter(), Counter(), []
        self.lock, self.dead = threading.Lock(), False

    def kill(self):
        """Accept no connection any more and answer nothing, as a process that was killed."""
        self.dead = True
        threading.Thread(target=lambda: (self.shutdown(), self.server_close()), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}{PATH}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that has gone is no error of the server."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt, server = prompt_of(body), self.server
        if server.dead:
            return cut(self)
        with server.lock:
            server.headers.append(dict(self.headers))
            server.tries[prompt] += 1
            fault = server.fault(prompt, server.tries[prompt])
            server.faults[fault] += 1
        if fault:
            FAULTS[fault](self)
        else:
            data = json.dumps(server.reply(body)).encode()
            if server.dead:
                return cut(self)
            self.answer(200, data, {})
            with server.lock:
                server.answered[prompt] += 1

    def answer(self, code, data, headers):
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        """Nothing on the terminal."""
