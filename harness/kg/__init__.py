"""CRAG's knowledge graphs: a client of the mock API's server, and the same 38 functions on the official files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Lookup

URL_VARIABLE = "CRAG_MOCK_API_URL"


class KnowledgeGraph(Protocol):
    """Serves calls of the API's functions."""

    @property
    def fingerprint(self) -> str:
        """Identifies everything that the replies depend on."""
        ...

    def call(self, calls: Sequence[Lookup]) -> list[Any | CallError]:
        """The reply to each call (JSON-able; None or [] without a result), or a CallError if the call failed."""
        ...


def open_graph(place: str | Path | None = None) -> KnowledgeGraph:
    """The knowledge graph at an address or in a folder.

    Args:
        place: The address of a server (``http://...``) or a folder of the official files; None takes the server that
            the environment variable ``CRAG_MOCK_API_URL`` names.

    Raises:
        UserError: No place, an invalid address, or a folder that is missing or holds no domain.
    """
    from lm_eval_rag.harness.kg.client import HttpGraph
    from lm_eval_rag.harness.kg.embedded import DOMAINS, EmbeddedGraph
    from lm_eval_rag.harness.kg.finance import COMPANIES

    chosen = str(place or os.environ.get(URL_VARIABLE) or "")
    if not chosen:
        raise UserError(f"No knowledge graph: give kg=FOLDER or kg=http://..., or set {URL_VARIABLE}.")
    if "://" in chosen:
        return HttpGraph(chosen)
    graph = EmbeddedGraph(Path(chosen))
    if not any((graph.folder / name).exists() for name in (*DOMAINS, *COMPANIES)):
        raise UserError(f"kg={chosen!r} holds no knowledge graph: give the folder of {', '.join(DOMAINS)}.")
    return graph
