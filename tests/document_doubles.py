"""What the commands of the documents ask over HTTP: a system, a chat model and a knowledge graph, on this machine."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "faults"))

from proxy import Handler

CHAT = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Vale"}}]}


class Answering(Handler):
    """A system at ``/ask``, in the form of docs/your_system.md, and a chat model everywhere else."""

    def do_POST(self) -> None:  # noqa: N802 - the name is that of http.server
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        reply: Any = {"answer": "Vale", "passages": []} if self.path == "/ask" else CHAT
        self.answer(200, json.dumps(reply).encode(), {})


@contextmanager
def answering() -> Iterator[tuple[str, list[str]]]:
    """The address of a server with both, and the paths that it was asked for so far."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.paths = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", server.paths  # type: ignore[attr-defined]
        server.shutdown()


@contextmanager
def graph_server(folder: Path) -> Iterator[str]:
    """The address of `lm-eval-rag serve-kg` with the graph of crag_demo, whose files are written to the folder."""
    import uvicorn

    from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
    from lm_eval_rag.harness.kg.server import make_app
    from lm_eval_rag.tasks.crag_demo.graph import write_graph
    from lm_eval_rag.tasks.crag_demo.world import make_world

    write_graph(folder, make_world(0))
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(EmbeddedGraph(folder)), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
