"""Exact search over shards on disk, compared with FAISS's flat index in memory, and with reading the file once.

    python scripts/bench_shards.py --vectors 100000 --dimensions 384 --queries 1 100 1000 --store float16 --json FILE

Synthetic unit vectors. The engines take turns; each ratio is of two times of one round, and the minimum, median and
maximum over all rounds are printed. CPU seconds are used, because other processes affect them least. Peak memory is
that of a process of its own, with the shard that is mapped. FAISS holds all vectors in memory as float32; what it takes
to load them is not counted. torch has been imported, as it is where a transformer has encoded the queries.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measures import Measure, ratios, write

from lm_eval_rag.harness.retrieval.embeddings import stored_vectors
from lm_eval_rag.harness.retrieval.exact_search import best_rows, memory

ROUNDS, K, CHUNK = 5, 100, 8192


def main() -> None:
    """Print one line per number of queries, and the peak of memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--store", choices=["float16", "float32", "int8"], default="float16")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-faiss", action="store_true", help="without the peer, which needs all vectors in memory")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        vectors = _vectors(Path(folder), options.vectors, options.dimensions, options.store)
        measures = [one for queries in options.queries for one in _compare(vectors, queries, options)]
        peak = _peak(Path(folder), options, max(options.queries))
    size = f"search, {options.vectors:,} x {options.dimensions} {options.store}"
    measures.append(Measure(f"{size}, peak", "GB", [peak / 1e9]))
    write(options.json, measures, vars(options))
    bound = memory(max(options.queries), options.dimensions, K)
    print(f"peak memory beyond an idle process: {peak / 1e6:.0f} MB (stated for any corpus: {bound / 1e6:.0f} MB "
          f"and one shard)")  # fmt: skip


def _vectors(folder: Path, rows: int, dimensions: int, store: Any) -> Any:
    def encode(start: int, stop: int) -> Any:
        part = np.random.default_rng([0, start]).standard_normal((stop - start, dimensions), np.float32)
        return part / np.linalg.norm(part, axis=1, keepdims=True)

    return stored_vectors(folder, rows, store, encode, {"tower": "synthetic"}, CHUNK)


def _queries(count: int, dimensions: int) -> Any:
    queries = np.random.default_rng(1).standard_normal((count, dimensions), np.float32)
    return queries / np.linalg.norm(queries, axis=1, keepdims=True)


def _compare(vectors: Any, count: int, options: argparse.Namespace) -> list[Measure]:
    queries = _queries(count, options.dimensions)
    engines: dict[str, Callable[[], Any]] = {
        "read": lambda: _read(vectors),
        "ours": lambda: best_rows(vectors, queries, K),
    }
    if not options.no_faiss:
        import faiss

        flat = faiss.IndexFlatIP(options.dimensions)
        flat.add(np.asarray(vectors, np.float32))
        engines["faiss"] = lambda: flat.search(queries, K)
        ids = [[row for row, _ in ranking] for ranking in best_rows(vectors, queries, K)]
        equal = (flat.search(queries, K)[1] == np.array(ids)).mean()
        print(f"{count} queries: {100 * equal:.3f} % of the places have FAISS's id (others: ties in float32)")
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(options.rounds):
        for name, engine in engines.items():
            began = time.process_time()
            engine()
            seconds[name].append(time.process_time() - began)
    name = f"search, {options.vectors:,} x {options.dimensions} {options.store}, {count:,} queries"
    peers = {"faiss": "x FAISS flat's time", "read": "x the time of reading the files"}
    measures = [Measure(name, "CPU s", seconds["ours"])]
    measures += [Measure(name, unit, ratios(seconds["ours"], seconds[p])) for p, unit in peers.items() if p in seconds]
    for measure in measures[1:]:
        low, middle, high = measure.spread
        print(f"{count:>6} queries  ours {np.median(seconds['ours']):8.3f} s  {measure.unit:32} "
              f"min {low:.2f}  median {middle:.2f}  max {high:.2f}", flush=True)  # fmt: skip
    return measures


def _read(vectors: Any) -> int:
    """Every byte of the shards once, as plain reads."""
    total = 0
    for shard in vectors.shards:
        with (vectors.folder / shard.file).open("rb", buffering=0) as file:
            while part := file.read(1 << 24):
                total += len(part)
    return total


def _peak(folder: Path, options: argparse.Namespace, queries: int) -> int:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return int(pool.apply(_search_alone, (folder, options.vectors, options.dimensions, options.store, queries)))


def _search_alone(folder: Path, rows: int, dimensions: int, store: str, queries: int) -> int:
    """Bytes by which one search raises the peak of a fresh process."""
    vectors, asked = _vectors(folder, rows, dimensions, store), _queries(queries, dimensions)
    before = _highest()
    best_rows(vectors, asked, K)
    return _highest() - before


def _highest() -> int:
    """The most bytes that this process has held; getrusage would count its parent's before it was started."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    main()
