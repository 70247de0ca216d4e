"""Document vectors made elsewhere: ``retriever_index=FILE_OR_FOLDER`` of ``retriever=dense``.

A file of ``faiss.write_index`` of any type, or embeddings as ``.npy`` or ``.safetensors``. The order of the vectors is
checked by count and by an id file: one id per line, ``FILE.ids.txt``, or ``ids.txt`` or Pyserini's ``docid`` in the
same folder. Without one, ``retriever_index_ids=rows`` says that the vectors are in the order of the corpus.

A folder that ``lm-eval-rag encode`` wrote has a manifest in place of ids: corpus and encoder must be those of the run.

Embeddings and flat indexes of inner products are searched exactly, as vectors that are encoded here. All others keep
the scores of FAISS; a distance is negated, so that higher is better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import hash_of
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import nearest
from lm_eval_rag.harness.retrieval.document_ids import DocumentIds
from lm_eval_rag.harness.retrieval.manifest import open_shards
from lm_eval_rag.harness.retrieval.shards import MANIFEST
from lm_eval_rag.harness.retrieval.vector_files import read_vectors, sampled_hash, vector_file, without_ids

Ids = Literal["file", "rows"]
Ranking = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class PrebuiltVectors:
    """Vectors of all documents of a corpus.

    Args:
        identity: Hash of the file's size and of samples of its content.
        vectors: (N, D), or None for an index that is searched by FAISS.
        candidates: Searches the vectors on GPUs, or None.
        index: FAISS's index, or None for vectors.
        rows: Row of the corpus of each vector; None for the same order.
    """

    identity: str
    vectors: Any
    candidates: nearest.Candidates | None
    index: Any
    rows: Any

    @property
    def dimensions(self) -> int:
        """Of each vector."""
        return int(self.vectors.shape[1] if self.index is None else self.index.d)

    def search(self, queries: Any, k: int, explored: int) -> list[Ranking]:
        """For each query (Q, D), float32, at most ``k`` (row, score) pairs, best first, ties by place in the file.

        Args:
            explored: Nodes of HNSW, or lists of IVF, that are visited for a query.
        """
        if self.index is None:
            rankings = nearest.search(self.vectors, self.candidates, queries, k, exact=True)
        else:
            _explore(self.index, max(explored, k), explored)
            rankings = [_by_faiss(self.index, query, k) for query in queries]  # one by one: no batch changes a score
        if self.rows is None:
            return rankings
        return [[(int(self.rows[place]), score) for place, score in ranking] for ranking in rankings]


def open_vectors(
    path: str, corpus: Corpus, ids: Ids = "file", tower: Mapping[str, Any] | None = None
) -> PrebuiltVectors:
    """The vectors in a file, or in a folder with one such file or with shards.

    Args:
        tower: The encoder of the documents, by its identity; compared with the manifest of shards.

    Raises:
        UserError: There is no such file, it is a pickle or damaged, or it does not fit the corpus or the encoder.
    """
    if (Path(path).expanduser() / MANIFEST).is_file():
        return _of_shards(Path(path).expanduser(), corpus, tower)
    file = vector_file(Path(path).expanduser())
    vectors, index = read_vectors(file)
    count = len(vectors) if index is None else int(index.ntotal)
    if count != len(corpus):
        raise UserError(
            f"retriever_index={path} has {count:,} vectors, the corpus {corpus.id} has {len(corpus):,} documents. Give "
            "vectors of this corpus, or choose the corpus that they were made from."
        )
    rows = None if ids == "rows" else _rows(file, corpus)
    candidates = nearest.flat(vectors) if index is None else None
    return PrebuiltVectors(sampled_hash(file), vectors, candidates, index, rows)


def _of_shards(folder: Path, corpus: Corpus, tower: Mapping[str, Any] | None) -> PrebuiltVectors:
    """Vectors that ``lm-eval-rag encode`` made, in the order of the corpus."""
    expected = {"corpus": corpus.fingerprint, **({} if tower is None else {"tower": tower})}
    vectors = open_shards(folder, len(corpus), expected)
    return PrebuiltVectors(hash_of(folder / MANIFEST)[:16], vectors, nearest.flat(vectors), None, None)


def _explore(index: Any, nodes: int, lists: int) -> None:
    """Let an approximate index look far enough; what the file says is often the least."""
    import faiss

    inner = without_ids(index)
    if hasattr(inner, "hnsw"):
        inner.hnsw.efSearch = nodes
    inverted = faiss.try_extract_index_ivf(inner)
    if inverted is not None:
        inverted.nprobe = min(lists, inverted.nlist)


def _by_faiss(index: Any, query: Any, k: int) -> Ranking:
    import faiss

    scores, places = index.search(np.ascontiguousarray(query[None], np.float32), min(k, index.ntotal))
    sign = 1.0 if index.metric_type == faiss.METRIC_INNER_PRODUCT else -1.0
    hits = [(place, sign * score) for place, score in zip(places[0].tolist(), scores[0].tolist(), strict=True)]
    return sorted((hit for hit in hits if hit[0] >= 0), key=lambda hit: (-hit[1], hit[0]))


def _rows(file: Path, corpus: Corpus) -> Any:
    """The row of each vector by the id file; None if all are in the order of the corpus."""
    names = (file.with_name(f"{file.name}.ids.txt"), file.with_name("ids.txt"), file.with_name("docid"))
    ids_file = next((name for name in names if name.is_file()), None)
    if ids_file is None:
        raise UserError(
            f"There is no id file for {file}, so the order of its vectors cannot be checked. Write one id per line, in "
            f"the order of the vectors, into {names[0].name} or {names[1].name} beside it; or, if the vectors are in "
            "the order of the corpus, give retriever_index_ids=rows."
        )
    ids = ids_file.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    rows = DocumentIds(corpus).rows(ids)
    problem = _problem(ids, rows, len(corpus))
    if problem:
        raise UserError(f"The id file {ids_file} does not fit the corpus {corpus.id}: {problem}.")
    return None if rows == list(range(len(rows))) else np.array(rows, np.int64)


def _problem(ids: Sequence[str], rows: Sequence[int | None], documents: int) -> str:
    if len(ids) != documents:
        return f"it has {len(ids):,} ids, the corpus {documents:,} documents"
    if None in rows:
        return f"the corpus has no document {ids[rows.index(None)]!r} (line {rows.index(None) + 1})"
    return "it has an id twice" if len(set(rows)) < len(rows) else ""
