"""Dense retrieval: two encoders ("towers"), inner product, FAISS (as DPR, arXiv:2004.04906).

``retriever=dense,retriever_model=minilm`` takes an encoder by its short name, from a folder or from the Hub. Documents
are encoded once, in bfloat16 where the hardware is fast at it, and stored in shards in
``$LM_EVAL_RAG_CACHE/embeddings/<hash>``. Vectors made elsewhere are given as ``retriever_index=FILE_OR_FOLDER``.
Queries are encoded in float32: they are few, and in bfloat16 the vector of a query would depend on its batch. In
float32 only its last digits may.

DPR's own code encodes a titled passage as the pair (title, text). ``dpr`` encodes title, line break and text as one
segment here, so its vectors for ``rag_nq`` and the like are not DPR's published ones. ``retriever_index`` takes those.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.parameters import Positive
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import encoding_cost, nearest
from lm_eval_rag.harness.retrieval.embeddings import fill, stored_vectors, unfinished
from lm_eval_rag.harness.retrieval.encoders import Overrides, Pooling, Tower, need_roles, towers
from lm_eval_rag.harness.retrieval.prebuilt_vectors import Ids, PrebuiltVectors, open_vectors
from lm_eval_rag.harness.retrieval.shard_file import Shardful
from lm_eval_rag.harness.retrieval.shards import FORMAT as LAYOUT
from lm_eval_rag.harness.retrieval.shards import Store
from lm_eval_rag.harness.retrieval.towers import Dtype, Encoder, fast_dtype

FORMAT = 1  # of what a search returns; how vectors are stored is no part of it
Kind = Literal["flat", "hnsw"]
KINDS: dict[str, Kind] = {"flat": "flat", "hnsw": "hnsw"}


class Dense:
    """Searches one corpus. A model is loaded when it is first needed.

    Args:
        queries: Tower of the queries.
        documents: Tower of the documents, into the same space.
        index: ``flat`` (exact) or ``hnsw``.
        prebuilt: Vectors made elsewhere; then nothing is encoded but queries.
        dtype: Precision in which documents are encoded.
        store: Precision in which their vectors are stored.
        neighbours: Links of each node of HNSW (M).
        explored: Nodes that HNSW visits for a query (efSearch); of a prebuilt index of IVF the lists (nprobe).
    """

    def __init__(
        self,
        corpus: Corpus,
        queries: Tower,
        documents: Tower,
        *,
        index: Kind = "flat",
        prebuilt: PrebuiltVectors | None = None,
        dtype: Dtype = "auto",
        store: Store = "float16",
        batch_size: int = 64,
        device: str | None = None,
        neighbours: int = 32,
        explored: int = 128,
    ) -> None:
        need("The dense retriever", "dense", "torch", "transformers", "sentence_transformers", "faiss")
        self._corpus, self._queries, self._documents = corpus, queries, documents
        self._index, self._graph, self._store, self._prebuilt = index, (neighbours, explored), store, prebuilt
        self._batch_size, self._device = batch_size, device
        self._dtype: Dtype = fast_dtype(device) if dtype == "auto" else dtype
        self._key = {
            "corpus": corpus.fingerprint,
            "tower": documents.identity,
            "dtype": self._dtype,
            "store": store,
            "format": LAYOUT,
        }
        kind = index if index == "flat" else f"hnsw(M={neighbours}, ef={explored})"
        packages = f"{versions('torch', 'transformers', 'sentence-transformers')}, {nearest.provider()}"
        self.fingerprint = (
            f"dense(query={_json(queries.identity)}, document={_json(documents.identity)}, dtype={self._dtype}, "
            f"store={store}, index={kind}, format={FORMAT}, {packages}) over {corpus.fingerprint}"
        )
        if prebuilt is not None:
            self.fingerprint = (
                f"dense(query={_json(queries.identity)}, index=file:{prebuilt.identity}, explored={explored}, "
                f"{packages}) over {corpus.fingerprint}"
            )

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text the ``k`` documents with the largest inner product, best first, ties by row.

        Raises:
            UserError: k is below 1, a model cannot be loaded, or the towers give vectors of different dimensions.
        """
        at_least("k", k)
        if not texts:
            return []
        if self._prebuilt is not None:
            return self._search_prebuilt(self._prebuilt, texts, k)
        vectors, queries = self.vectors, self._encoder.encode(texts)
        if queries.shape[1] != vectors.shape[1]:
            raise UserError(
                f"The query tower {self._queries.checkpoint.folder} gives {queries.shape[1]} dimensions, the document "
                f"tower {self._documents.checkpoint.folder} {vectors.shape[1]}. Give two towers of one space."
            )
        return nearest.search(vectors, self._candidates, queries, k, exact=self._index == "flat")

    def _search_prebuilt(
        self, prebuilt: PrebuiltVectors, texts: Sequence[str], k: int
    ) -> list[list[tuple[int, float]]]:
        queries = self._encoder.encode(texts)
        if queries.shape[1] != prebuilt.dimensions:
            raise UserError(
                f"The query tower {self._queries.checkpoint.folder} gives {queries.shape[1]} dimensions, the vectors "
                f"of retriever_index have {prebuilt.dimensions}. Give retriever_model= the encoder that made them."
            )
        return prebuilt.search(queries, k, self._graph[1])

    @cached_property
    def vectors(self) -> Any:
        """The documents' vectors (N, D), float16 or float32, in shards that are mapped one at a time."""
        return stored_vectors(self.folder, len(self._corpus), self._store, self._encode_documents(), self._key)

    def encode_share(self, share: tuple[int, int], size: int | None = None) -> Any | None:
        """Encode one process's share of the documents; see :func:`~lm_eval_rag.harness.retrieval.embeddings.fill`.

        Raises:
            OSError: The folder cannot be written.
        """
        documents = self._encode_documents()
        return fill(self.folder, len(self._corpus), self._store, documents, self._key, share=share, size=size)

    @property
    def unfinished(self) -> list[Shardful | None]:
        """The shards of the documents' vectors; None for those that are finished."""
        return unfinished(self.folder, len(self._corpus), self._store, self._key)

    @property
    def settings(self) -> dict[str, Any]:
        """``dtype`` and ``store`` as they are used here: another machine may take another ``dtype=auto``."""
        return {"dtype": self._dtype, "store": self._store}

    def _encode_documents(self) -> Callable[[int, int], Any]:
        """Encodes the rows from start to stop; loads the model at its first call."""
        loaded: list[Encoder] = []

        def encode(start: int, stop: int) -> Any:
            if not loaded:
                encoding_cost.announce(len(self._corpus), start)
                loaded.append(self._load(self._documents, self._dtype))
                encoding_cost.estimate(loaded[0], self._corpus, start)
            return loaded[0].encode(self._corpus.texts_of(range(start, stop)))

        return encode

    @cached_property
    def _encoder(self) -> Encoder:
        return self._load(self._queries, "float32")

    @cached_property
    def _candidates(self) -> nearest.Candidates | None:
        if self._index == "flat":
            return nearest.flat(self.vectors)
        file = self.folder / f"hnsw-{self._graph[0]}.faiss"
        return nearest.hnsw(self.vectors, *self._graph, file=file)

    @property
    def folder(self) -> Path:
        """Where the vectors of the documents are stored."""
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
    index: str = "flat",
    index_ids: Ids | None = None,
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
            Hub id of the encoder; of the query encoder alone if there is a ``document_model``. The Hub ids of presets
            and of their families have the settings of the preset.
        document_model: Folder or Hub id of the document encoder, if it is another than the query encoder.
        adapter: PEFT folder or fine-tuned checkpoint (folder or Hub id) for the query tower alone.
        index: ``flat``, ``hnsw``, or a file or folder with vectors of the documents.
        index_ids: How vectors from a file are known to be in order: by their id ``file`` (default), or ``rows``: they
            are in the order of the corpus.
        pooling: How token vectors become one: ``cls``, ``mean``, ``pooler``, or the checkpoint's ``own``.
        query_prefix: Text before every query.
        document_prefix: Text before every document.
        normalize: Whether vectors are scaled to length 1.
        max_length: Tokens of a text that are read.
        dtype: Numbers that documents are encoded in; ``auto`` is bfloat16 where the hardware is fast at it.
        store: Numbers that vectors are stored in.
        batch_size: Documents that are encoded at once.
        device: Where the encoder runs, such as ``cuda:0``; None is a GPU if there is one.
        neighbours: Neighbours of a document in the graph of ``hnsw``.
        explored: Nodes (``hnsw``) or lists (IVF) that a search visits.

    Raises:
        UserError: A package or a checkpoint is missing, DPR's encoders are in each other's place, or a file of vectors
            does not fit the corpus.
    """
    if index not in KINDS and not Path(index).expanduser().exists():
        hint = "Or give an existing FAISS file, embeddings (.npy, .safetensors), or their folder."
        raise unknown("value of index", index, KINDS, hint=hint)
    if index in KINDS and index_ids is not None:
        raise UserError("index_ids is of vectors from a file: give index=FILE_OR_FOLDER too.")
    need("The dense retriever", "dense", "torch", "transformers", "sentence_transformers", "faiss")
    overrides = Overrides(pooling, query_prefix, document_prefix, normalize, max_length)
    queries, documents = towers(model, document_model, adapter, overrides)
    need_roles(queries, documents if index in KINDS else None)
    prebuilt = None if index in KINDS else open_vectors(index, corpus, index_ids or "file", documents.identity)
    return Dense(
        corpus,
        queries,
        documents,
        index=KINDS.get(index, "flat"),
        prebuilt=prebuilt,
        dtype=dtype,
        store=store,
        batch_size=batch_size,
        device=device,
        neighbours=neighbours,
        explored=explored,
    )


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
