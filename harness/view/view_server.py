"""Serves one page on 127.0.0.1 until Ctrl-C, with the standard library."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lm_eval_rag.harness.common.ports import HOST, local_server


def page_server(page: str, port: int = 0) -> ThreadingHTTPServer:
    """A server of ``page`` at ``/``, which listens and does not serve yet; port 0 takes a free one.

    Requests for another host are refused, so that no website can read the page by pointing its name at 127.0.0.1.

    Raises:
        UserError: The port is none.
        MachineError: The port cannot be used.
    """
    body = page.encode("utf-8", "replace")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            self._answer(body)

        def do_HEAD(self) -> None:
            self._answer(b"")

        def _answer(self, content: bytes) -> None:
            host = self.headers.get("Host", "").partition(":")[0]
            if host not in (HOST, "localhost"):
                self.send_error(HTTPStatus.FORBIDDEN, f"This page is for {HOST} only.")
                return
            if self.path.partition("?")[0] != "/":
                self.send_error(HTTPStatus.NOT_FOUND, "There is only one page, /.")
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Log no requests: there is one reader."""

    return local_server(Handler, port)


def url_of(server: ThreadingHTTPServer) -> str:
    """The address of the page."""
    return f"http://{HOST}:{server.server_address[1]}/"
