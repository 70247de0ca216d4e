"""Approximate indexes of FAISS beside exact search: recall, time, and size, over a corpus that MiniLM encoded.

    python scripts/bench_faiss.py ruleqa_i --queries 300

The corpus is encoded first, if it is not (``lm-eval-rag encode``). Recall@k is the mean share of the k exact neighbours
that an index returns among its first k. HNSW is built by ``retriever_index=hnsw``; IVF with product quantisation is a
file as ``retriever_index=FILE`` takes it. CPU seconds, one thread; the encoding of the queries is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from measures import Measure, write

from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.retrieval import make_retriever, nearest
from lm_eval_rag.harness.retrieval.encoders import Overrides, towers
from lm_eval_rag.harness.retrieval.prebuilt_vectors import open_vectors
from lm_eval_rag.harness.retrieval.towers import Encoder
from lm_eval_rag.tasks.ruleqa.build import build

DEPTHS = (10, 100)
Ranking = list[tuple[int, float]]


def main() -> None:
    """Print one table."""
    import faiss

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("task")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    corpus = open_corpus(build(options.task))
    stored = make_retriever("dense", corpus, model=options.model).vectors  # type: ignore[attr-defined]
    vectors = np.concatenate([np.asarray(stored[at : at + 65_536], np.float32) for at in range(0, len(stored), 65_536)])
    texts = pq.read_table(corpus.folder / "queries.parquet")["text"].to_pylist()  # type: ignore[operator]
    drawn = np.random.default_rng(0).permutation(len(texts))[: options.queries]
    queries = Encoder(towers(options.model, None, None, Overrides())[0]).encode([texts[i] for i in drawn])
    print(f"{len(vectors):,} vectors of {vectors.shape[1]} numbers, {len(queries)} queries")
    print("| index | built in, CPU s | MB | queries a CPU second | recall@10 | recall@100 |")
    print("|---|---:|---:|---:|---:|---:|")
    exact, rate = _timed(lambda k: nearest.search(stored, None, queries, k, exact=True), len(queries))
    print(f"| exact, float16 | | {vectors.size * 2 / 1e6:.0f} | {rate:,.0f} | 1 | 1 |", flush=True)
    measures = [Measure("exact search", "queries a CPU second", [rate])]
    with TemporaryDirectory() as folder:
        for name, cost, size, search in (*_graphs(stored, queries), *_lists(vectors, queries, corpus, Path(folder))):
            found, rate = _timed(search, len(queries))
            shares = [_recall(found, exact, k) for k in DEPTHS]
            recall = " | ".join(f"{share:.3f}" for share in shares)
            print(f"| {name} | {cost:.1f} | {size / 1e6:.0f} | {rate:,.0f} | {recall} |", flush=True)
            measures.append(Measure(name, "queries a CPU second", [rate]))
            measures += [Measure(f"{name}, recall@{k}", "", [one]) for k, one in zip(DEPTHS, shares, strict=True)]
    write(options.json, measures, vars(options))


def _graphs(stored: Any, queries: Any) -> Any:
    """HNSW, as ``retriever_index=hnsw`` builds it, with two values of ``explored``."""
    with TemporaryDirectory() as folder:
        began, file = time.process_time(), Path(folder) / "hnsw.faiss"
        nearest.hnsw(stored, 32, 128, file)
        cost = time.process_time() - began
        for explored in (128, 512):
            candidates = nearest.hnsw(stored, 32, explored, file)
            yield (
                f"HNSW, M = 32, `explored={explored}`",
                cost,
                file.stat().st_size,
                lambda k, candidates=candidates: nearest.search(stored, candidates, queries, k, exact=False),
            )


def _lists(vectors: Any, queries: Any, corpus: Any, folder: Path) -> Any:
    """IVF with product quantisation: 48 bytes a vector, beside a plain IVF."""
    import faiss

    lists = 4 * int(len(vectors) ** 0.5 / 4)
    for name in (f"IVF{lists},Flat", f"IVF{lists},PQ{vectors.shape[1] // 8}"):
        began = time.process_time()
        index = faiss.index_factory(vectors.shape[1], name, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
        index.add(vectors)
        cost, file = time.process_time() - began, folder / f"{name.replace(',', '-')}.index"
        faiss.write_index(index, str(file))
        opened = open_vectors(str(file), corpus, "rows")
        for explored in (16, 64):
            yield (
                f"{name}, `explored={explored}`",
                cost,
                file.stat().st_size,
                lambda k, opened=opened, explored=explored: opened.search(queries, k, explored),
            )


def _timed(search: Callable[[int], Sequence[Ranking]], queries: int) -> tuple[list[Ranking], float]:
    """What the deepest search finds, and its queries a CPU second."""
    began = time.process_time()
    found = list(search(max(DEPTHS)))
    return found, queries / (time.process_time() - began)


def _recall(found: Sequence[Ranking], exact: Sequence[Ranking], k: int) -> float:
    pairs = zip(found, exact, strict=True)
    return float(np.mean([len({r for r, _ in a[:k]} & {r for r, _ in b[:k]}) / k for a, b in pairs]))


if __name__ == "__main__":
    main()
