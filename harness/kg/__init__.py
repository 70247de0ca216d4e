"""CRAG's knowledge graphs: a client for the mock API's server and the same 38 functions on the official files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Lookup

URL_VARIABLE = "CRAG_MOCK_API_URL"


class KnowledgeGraph(Protocol):
    """What serves calls of the API's functions."""

    @property
    def fingerprint(self) -> str:
        """Names everything that the replies depend on."""
        ...

    def call(self, calls: Sequence[Lookup]) -> list[Any | CallError]:
        """The reply to each call (JSON-able; None or [] when nothing was found), a CallError for one that failed."""
        ...


def open_graph(given: str | Path | None = None) -> KnowledgeGraph:
    """The knowledge graph that a user names.

    Args:
        given: The address of a server (``http://...``) or a folder of the official files; None takes the server that
            the environment variable ``CRAG_MOCK_API_URL`` names.

    Raises:
        UserError: Neither is given, the address is none, or there is no such folder.
    """
    from lm_eval_rag.harness.kg.client import HttpGraph
    from lm_eval_rag.harness.kg.embedded import EmbeddedGraph

    chosen = str(given or os.environ.get(URL_VARIABLE) or "")
    if not chosen:
        raise UserError(f"No knowledge graph: give kg=FOLDER or kg=http://..., or set {URL_VARIABLE}.")
    return HttpGraph(chosen) if "://" in chosen else EmbeddedGraph(Path(chosen))
