"""The asks about preparations: what was prepared for a query's corpus, and the vectors that preparations ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Embed, Prepared
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.types import Query, Step
from lm_eval_rag.harness.retrieval.encoding import vectors_of


@dataclass(frozen=True, slots=True)
class PreparedBackend:
    """Serves Prepared, from memory or disk."""

    corpora: Corpora
    batch: int = 4096

    def serve(self, asked: Sequence[tuple[Query, Prepared]]) -> list[Served | CallError]:
        """What each ask's function makes of the tables."""
        return [self._open(query, ask) for query, ask in asked]

    def _open(self, query: Query, ask: Prepared) -> Served:
        began = perf_counter()
        product = self.corpora.products.of(self.corpora.key(query))
        value = product.view(ask.read)
        sizes = ", ".join(f"{name}: {rows} rows" for name, rows in product.meta["tables"].items())
        return Served(value, Step("Prepared", product.id, sizes, seconds=perf_counter() - began))


@dataclass(frozen=True, slots=True)
class EmbedBackend:
    """Serves Embed; vectors are computed anew, or kept by their encoder, and not in the journal."""

    corpora: Corpora
    batch: int = 16

    def serve(self, asked: Sequence[tuple[Query, Embed]]) -> list[Served | CallError]:
        """The vectors of each ask's texts."""
        return [self._embed(ask) for _, ask in asked]

    def _embed(self, ask: Embed) -> Served:
        began = perf_counter()
        vectors = vectors_of(ask.texts, self.corpora.retriever, self.corpora.options)
        step = Step("Embed", f"{len(ask.texts)} texts", f"{vectors.shape[1]} dimensions", perf_counter() - began)
        return Served(vectors, step)
