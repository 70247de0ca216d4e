"""Dense retrieval: two encoders ("towers"), inner product, FAISS.

``retriever=dense,retriever_model=minilm``: a preset of :mod:`lm_eval_rag.harness.retrieval.encoders`, a folder, or a
Hub id. Documents are encoded once, in bfloat16 where the hardware is fast at it, and stored in
``$LM_EVAL_RAG_CACHE/embeddings/<hash>``. Queries are encoded in float32: they are few, and in bfloat16 the vector of a
query would depend on its batch. In float32 only its last digits may.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.parameters import Positive
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import nearest
from lm_eval_rag.harness.retrieval.embeddings import Store, stored_vectors
from lm_eval_rag.harness.retrieval.encoders import Overrides, Pooling, Tower, towers
from lm_eval_rag.harness.retrieval.towers import Dtype, Encoder, fast_dtype

FORMAT = 1  # of the vectors on disk
Kind = Literal["flat", "hnsw"]


class Dense:
    """Searches one corpus. A model is loaded when it is first needed.

    Args:
        queries: Tower of the queries.
        documents: Tower of the documents, into the same space.
        index: ``flat`` (exact) or ``hnsw``.
        dtype: Precision in which documents are encoded.
        store: Precision in which their vectors are stored.
        neighbours: Links of each node of HNSW (M).
        explored: Nodes that HNSW visits for a query (efSearch).
    """

    def __init__(
        self,
        corpus: Corpus,
        queries: Tower,
        documents: Tower,
        *,
        index: Kind = "flat",
        dtype: Dtype = "auto",
        store: Store = "float16",
        batch_size: int = 64,
        device: str | None = None,
        neighbours: int = 32,
        explored: int = 128,
    ) -> None:
        need("The dense retriever", "dense", "torch", "transformers", "sentence_transformers", "faiss")
        self._corpus, self._queries, self._documents = corpus, queries, documents
        self._index, self._graph, self._store = index, (neighbours, explored), store
        self._batch_size, self._device = batch_size, device
        self._dtype: Dtype = fast_dtype(device) if dtype == "auto" else dtype
        self._key = {
            "corpus": corpus.fingerprint,
            "tower": documents.identity,
            "dtype": self._dtype,
            "store": store,
            "format": FORMAT,
        }
        kind = index if index == "flat" else f"hnsw(M={neighbours}, ef={explored})"
        packages = f"{versions('torch', 'transformers', 'sentence-transformers')}, {nearest.provider()}"
        self.fingerprint = (
            f"dense(query={_json(queries.identity)}, document={_json(documents.identity)}, dtype={self._dtype}, "
            f"store={store}, index={kind}, format={FORMAT}, {packages}) over {corpus.fingerprint}"
        )

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text the ``k`` documents with the largest inner product, best first, ties by row.

        Raises:
            UserError: k is below 1, a model cannot be loaded, or the towers give vectors of different dimensions.
        """
        at_least("k", k)
        if not texts:
            return []
        vectors, queries = self.vectors, self._encoder.encode(texts)
        if queries.shape[1] != vectors.shape[1]:
            raise UserError(
                f"The query tower {self._queries.checkpoint.folder} gives {queries.shape[1]} dimensions, the document "
                f"tower {self._documents.checkpoint.folder} {vectors.shape[1]}. Give two towers of one space."
            )
        return nearest.search(vectors, self._candidates, queries, k, exact=self._index == "flat")

    @cached_property
    def vectors(self) -> Any:
        """The documents' vectors (N, D), float16 or float32, memory-mapped."""
        loaded: list[Encoder] = []  # the model, from the first chunk to the last

        def encode(start: int, stop: int) -> Any:
            if not loaded:
                loaded.append(self._load(self._documents, self._dtype))
            return loaded[0].encode(self._corpus.texts[start:stop])

        return stored_vectors(self._folder, len(self._corpus), self._store, encode, self._key)

    @cached_property
    def _encoder(self) -> Encoder:
        return self._load(self._queries, "float32")

    @cached_property
    def _candidates(self) -> nearest.Candidates:
        if self._index == "flat":
            return nearest.flat(self.vectors)
        file = self._folder / f"hnsw-{self._graph[0]}.faiss"
        return nearest.hnsw(self.vectors, *self._graph, file=file)

    @property
    def _folder(self) -> Any:
        return cache_dir() / "embeddings" / hashlib.sha256(_json(self._key).encode()).hexdigest()[:16]

    def _load(self, tower: Tower, dtype: Dtype) -> Encoder:
        load = _loaded if self._corpus.folder is None else Encoder  # small corpora in memory share a model
        return load(tower, dtype=dtype, device=self._device, batch_size=self._batch_size)


@lru_cache(maxsize=2)
def _loaded(tower: Tower, *, dtype: Dtype, device: str | None, batch_size: int) -> Encoder:
    """A tower that stays in memory, since the pages of each question are a small corpus of their own."""
    return Encoder(tower, dtype=dtype, device=device, batch_size=batch_size)


def dense(
    corpus: Corpus,
    *,
    model: str = "minilm",
    document_model: str | None = None,
    adapter: str | None = None,
    index: Kind = "flat",
    pooling: Pooling | None = None,
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    normalize: bool | None = None,
    max_length: Positive | None = None,
    dtype: Dtype = "auto",
    store: Store = "float16",
    batch_size: Positive = 64,
    device: str | None = None,
    neighbours: Positive = 32,
    explored: Positive = 128,
) -> Dense:
    """The dense retriever by its options. An option that is None comes from the preset or the checkpoint.

    Args:
        model: Preset (``dpr``, ``simcse``, ``contriever``, ``bge``, ``minilm``, ``sentence_t5``, ``e5``), folder or
            Hub id of the encoder; of the query encoder alone if there is a ``document_model``.
        adapter: PEFT folder or fine-tuned checkpoint (folder or Hub id) for the query tower alone.

    Raises:
        UserError: A package or a checkpoint is missing.
    """
    need("The dense retriever", "dense", "torch", "transformers", "sentence_transformers", "faiss")
    overrides = Overrides(pooling, query_prefix, document_prefix, normalize, max_length)
    queries, documents = towers(model, document_model, adapter, overrides)
    return Dense(
        corpus,
        queries,
        documents,
        index=index,
        dtype=dtype,
        store=store,
        batch_size=batch_size,
        device=device,
        neighbours=neighbours,
        explored=explored,
    )


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
