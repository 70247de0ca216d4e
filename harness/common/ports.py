"""Ports of the small local servers: one check and one server for `view`, `board` and `serve-kg`."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lm_eval_rag.harness.common.errors import MachineError, UserError

LAST_PORT = (1 << 16) - 1
HOST = "127.0.0.1"


def check_port(port: int) -> None:
    """Raise for what is no port.

    Raises:
        UserError: It is not between 0 and 65535.
    """
    if not 0 <= port <= LAST_PORT:
        raise UserError(f"--port {port} is not a port: give a whole number from 0 (any free one) to {LAST_PORT}.")


def local_server(handler: Callable[..., BaseHTTPRequestHandler], port: int) -> ThreadingHTTPServer:
    """A server on 127.0.0.1, which listens and does not serve yet; port 0 takes a free one.

    Raises:
        UserError: The port is none.
        MachineError: It cannot be used.
    """
    check_port(port)
    server: Any = handler  # http.server accepts any callable that makes a handler
    try:
        return ThreadingHTTPServer((HOST, port), server)
    except OSError as error:
        raise MachineError(f"Port {port} cannot be used: {error}. Give another one with --port, or 0.") from None


def serve_until_interrupted(server: ThreadingHTTPServer) -> None:
    """Serve until Ctrl-C, and close."""
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
