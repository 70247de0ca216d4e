"""BM25 over many passages of Wikipedia's lengths: building, searching, memory and disk of four engines.

    python scripts/bench_passages.py --passages 100000 1000000
    python scripts/bench_passages.py --passages 5000000 --engines lucene anserini

``bm25`` (with numba) and ``lucene`` are our retrievers; the peers are bm25s as its documentation shows it (numba, index
mapped from disk), and Anserini's indexer and searcher, which Pyserini calls. A passage has 100 words of a vocabulary of
a million, drawn with probability 1 / rank; a query has eight, without the 50 most frequent. Each engine builds, and
then searches, in a process of its own with one thread. Memory is the peak of the process, Java's included. Engines have
other tokens and lengths, so their results are not compared here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measures import Measure, write

WORDS, VOCABULARY, COMMON, K, CHUNK = 100, 1_000_000, 50, 10, 20_000
ENGINES = ("bm25", "lucene", "bm25s", "anserini")


def passages(count: int) -> Iterator[list[str]]:
    """The texts, in chunks."""
    draw, names = np.random.default_rng(0), np.array([f"w{rank:x}" for rank in range(VOCABULARY)])
    share = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        ranks = np.searchsorted(share, draw.random((size, WORDS)) * share[-1])
        yield [" ".join(row) for row in names[ranks]]


def queries(count: int) -> list[str]:
    """Texts of eight words."""
    draw = np.random.default_rng(1)
    share = np.cumsum(1 / np.arange(COMMON + 1, VOCABULARY + 1))
    ranks = COMMON + np.searchsorted(share, draw.random((count, 8)) * share[-1])
    return [" ".join(f"w{rank:x}" for rank in row) for row in ranks.tolist()]


def write_corpus(folder: Path, count: int) -> None:
    """The corpus as ours and as Anserini's JSON Lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lm_eval_rag.harness.core.types import Passage
    from lm_eval_rag.harness.data.corpus import COLUMNS, Corpus

    Corpus.of([Passage("0", "x")]).save(folder / "corpus")
    (folder / "jsonl").mkdir()
    schema = pq.read_schema(folder / "corpus" / "corpus.parquet")
    parquet = pq.ParquetWriter(folder / "corpus" / "corpus.parquet", schema, compression="zstd")
    with parquet, (folder / "jsonl" / "docs.jsonl").open("w") as lines:
        start = 0
        for texts in passages(count):
            ids = [str(start + i) for i in range(len(texts))]
            none = pa.nulls(len(texts), pa.string())
            columns = {**dict.fromkeys(COLUMNS, none), "id": pa.array(ids), "text": pa.array(texts)}
            parquet.write_table(pa.table([columns[name] for name in schema.names], schema=schema))
            lines.writelines(json.dumps({"id": i, "contents": t}) + "\n" for i, t in zip(ids, texts, strict=True))
            start += len(texts)


def ours(name: str, folder: Path) -> Callable[[list[str]], Any]:
    """One of our retrievers; its first use builds the index."""
    from lm_eval_rag.harness.data.corpus import Corpus
    from lm_eval_rag.harness.retrieval import bm25, make_retriever

    bm25.LONG = 0
    retriever: Any = make_retriever(name, Corpus.open(folder / "corpus"))
    return lambda texts: retriever.search(texts, K)


def plain_bm25s(folder: Path, build: bool) -> Callable[[list[str]], Any]:
    """bm25s by itself."""
    import bm25s

    place = folder / "bm25s"
    if build:
        lines = (folder / "jsonl" / "docs.jsonl").open()
        engine = bm25s.BM25(method="lucene", backend="numba")
        tokens = bm25s.tokenize([json.loads(line)["contents"] for line in lines], stopwords=None, show_progress=False)
        engine.index(tokens, show_progress=False)
        engine.save(place)
    loaded = bm25s.BM25.load(place, mmap=True)
    loaded.backend = "numba"
    tokenize = bm25s.tokenize
    return lambda texts: loaded.retrieve(
        tokenize(texts, stopwords=None, show_progress=False), k=K, show_progress=False, n_threads=1
    )


def anserini(folder: Path, build: bool) -> Callable[[list[str]], Any]:
    """The indexer and the searcher of Anserini, which are those that Pyserini calls."""
    from lm_eval_rag.harness.retrieval.lucene_java import java_class

    java, place = java_class(), str(folder / "anserini")
    if build:
        words = "-threads 1 -collection JsonCollection -generator DefaultLuceneDocumentGenerator"
        java("io.anserini.index.IndexCollection").main(
            [*words.split(), "-input", str(folder / "jsonl"), "-index", place]
        )
        return lambda texts: None
    searcher = java("io.anserini.search.SimpleSearcher")(place)
    return lambda texts: [[(hit.docid, hit.score) for hit in searcher.search(text, K)] for text in texts]


def inside(engine: str, what: str, folder: Path, count: int) -> None:
    """Build or search in this process, and print seconds, as JSON."""
    began = cpu()
    make = {"bm25s": plain_bm25s, "anserini": anserini}
    search = make[engine](folder, what == "build") if engine in make else ours(engine, folder)
    texts = queries(count)
    search(texts[:2])  # compiles
    ready = cpu()
    if what == "search":
        search(texts)
    print(json.dumps({"ready": ready - began, "search": cpu() - ready, "peak": peak()}))


def cpu() -> float:
    """CPU seconds of this process and its children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak() -> float:
    """The peak of this process or of its largest child, in GB."""
    import resource

    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e6


def run(engine: str, what: str, folder: Path, count: int) -> dict[str, float]:
    """One engine in a process of its own."""
    java = "-XX:ActiveProcessorCount=1 -Xmx8g"
    one = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "JAVA_TOOL_OPTIONS": java}
    words = [sys.executable, __file__, "--inside", engine, what, str(folder), str(count)]
    done = subprocess.run(words, env={**os.environ, **one}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{engine} could not {what}:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print one line for each engine and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--passages", type=int, nargs="+", default=[100_000])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        engine, what, folder, count = options.inside
        return inside(engine, what, Path(folder), int(count))
    print(f"{'passages':>10} {'engine':9}  build, CPU s   GB  disk, GB  queries a CPU s   GB   ready after, CPU s")
    measures = []
    for count in options.passages:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_corpus(folder, count)
            for engine in options.engines:
                before = size(folder)
                built = run(engine, "build", folder, 2)
                disk = (size(folder) - before) / 1e9
                found = run(engine, "search", folder, options.queries)
                rate = options.queries / found["search"]
                measures.append(Measure(f"BM25 over {count:,} passages, {engine}", "queries a CPU second", [rate]))
                print(
                    f"{count:10,} {engine:9} {built['ready']:13,.1f} {built['peak']:4.1f} {disk:9.2f} {rate:16,.0f} "
                    f"{found['peak']:4.1f} {found['ready']:20,.1f}",
                    flush=True,
                )
    write(options.json, measures, {**vars(options), "date": time.strftime("%Y-%m-%d")})


def size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
