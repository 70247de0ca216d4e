"""``lm-eval-rag serve-kg DIR``: a server with the mock API's surface over local files, for demo data and tests.

Paths, bodies and replies are those of the published server: POST of a JSON object, reply ``{"result": ...}``, and
status 422 for a body that does not fit. In addition: status 413 for a body longer than a megabyte, 422 for unknown
arguments, and 501 with the reason for a function whose file is missing.
"""

from __future__ import annotations

import argparse
import logging
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, MachineError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.common.ports import check_port
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.kg import KnowledgeGraph, open_graph
from lm_eval_rag.harness.kg.functions import FUNCTIONS, MAX_TEXT, MAX_TEXTS, Function, Parameter

logger = logging.getLogger(__name__)

MAX_BODY = 1 << 20  # bytes
SERVER = "lm-eval-rag serve-kg"


def serve_kg_main(argv: Sequence[str]) -> int:
    """Serve a folder of knowledge-graph files as CRAG's mock API does."""
    parser = argparse.ArgumentParser(prog="lm-eval-rag serve-kg", description=serve_kg_main.__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="holds finance, movie, music, open and sports")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen at (default: %(default)s)")
    chosen = parser.parse_args(argv)
    check_port(chosen.port)
    graph = open_graph(chosen.folder)
    need(SERVER, "serve", "fastapi", "uvicorn")
    import uvicorn

    with _listening(chosen.host, chosen.port) as listener:
        logger.info("CRAG_MOCK_API_URL=http://%s:%s", chosen.host, listener.getsockname()[1])
        uvicorn.Server(uvicorn.Config(make_app(graph), log_level="warning")).run(sockets=[listener])
    return 0


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens at an address.

    Raises:
        MachineError: The address is not one of this machine, or is in use.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise MachineError(
            f"--host {host} --port {port} cannot be used: {error.strerror}. Give another --port, or an address of this "
            "machine as --host."
        ) from None


def make_app(graph: KnowledgeGraph) -> Any:
    """The server's ASGI application.

    Raises:
        UserError: FastAPI is not installed.
    """
    need(SERVER, "serve", "fastapi")
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError

    app = FastAPI(title="Knowledge-graph API", description="The functions of CRAG's mock API over local files.")
    app.add_middleware(_ShortBodies)
    app.add_exception_handler(RequestValidationError, _refused)
    app.add_api_route("/", _alive, methods=["GET"])
    for function in FUNCTIONS.values():
        app.add_api_route(function.path, _route(graph, function), methods=["POST"], description=function.about)
    return app


async def _alive() -> dict[str, str]:
    return {"message": "The knowledge-graph API is running"}


async def _refused(request: Any, error: Any) -> Any:
    """422 with the error but not the body: FastAPI would repeat it, and some texts cannot be encoded."""
    from fastapi.responses import JSONResponse

    errors = [{key: one[key] for key in ("loc", "msg", "type")} for one in error.errors()]
    return JSONResponse({"detail": errors}, 422)


def _route(graph: KnowledgeGraph, function: Function) -> Callable[..., dict[str, Any]]:
    """Serves one function; it is not async, so that FastAPI runs it in a thread."""

    def serve(body: Any = None) -> dict[str, Any]:
        from fastapi import HTTPException

        arguments = body.model_dump() if body is not None else {}
        reply = graph.call([Lookup(function.name, tuple(arguments.items()))])[0]
        if isinstance(reply, CallError):
            raise HTTPException(501, str(reply))
        return {"result": reply}

    serve.__name__ = function.name
    if not function.parameters:
        return lambda: serve()
    serve.__annotations__ = {"body": _model(function)}
    serve.__defaults__ = None  # the body is required
    return serve


def _model(function: Function) -> Any:
    """The type of a function's body."""
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {p.wire: _field(p) for p in function.parameters}
    return create_model(function.name, __config__=ConfigDict(extra="forbid"), **fields)


def _field(parameter: Parameter) -> tuple[Any, Any]:
    from typing import Annotated, Literal

    from pydantic import Field

    text = Annotated[str, Field(max_length=MAX_TEXT)]
    kinds: dict[str, Any] = {
        "text": text,
        "integer": Annotated[int, Field(ge=-(2**63) + 1, lt=2**63)],
        "texts": Annotated[list[text], Field(max_length=MAX_TEXTS)],
    }
    kind = Literal[parameter.choices] if parameter.choices else kinds[parameter.type]
    return (kind, ...) if parameter.required else (kind | None, None)


class _ShortBodies:
    """Refuses bodies longer than ``MAX_BODY``, with or without a Content-Length."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        parts: list[bytes] = []
        more = True
        while more and sum(map(len, parts)) <= MAX_BODY:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
        if sum(map(len, parts)) > MAX_BODY:
            await send({"type": "http.response.start", "status": 413, "headers": []})
            await send({"type": "http.response.body", "body": b"the body is too long"})
            return
        whole = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def replay() -> Any:
            return whole.pop() if whole else await receive()

        await self.app(scope, replay, send)
