"""Queries a second of our BM25 search beside bm25s's own retrieval, with and without numba, over one index.

    python scripts/bench_bm25.py ruleqa_i ruleqa_w --queries 500

Each engine answers the same questions (``plain``) and the same questions with a rule (``guided``), tokenised
beforehand for bm25s and not for ours; the best of three runs counts, the engines taking turns. All run on one thread,
so CPU seconds are counted, which other processes disturb least. bm25s breaks ties by chance, so its scores are compared
and not its documents. numba's compilation is timed apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import bm25s
import numpy as np
import pyarrow.parquet as pq

from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.retrieval.bm25 import BM25, build_index, tokenize
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.tasks.ruleqa.build import build

ROUNDS = 3
Search = Callable[[], Any]


def main() -> None:
    """Print one table a set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--k", type=int, default=10)
    given = parser.parse_args()
    for task in given.tasks:
        bench(open_corpus(build(task)), given.queries, given.k)


def bench(corpus: Corpus, n: int, k: int) -> None:
    """Print one set's table."""
    assert corpus.folder is not None
    texts = corpus.texts
    building = _seconds(lambda: build_index(texts, 0.9, 0.4))
    BM25(corpus)
    ours, opening = BM25(corpus), _seconds(lambda: BM25(corpus))
    print(f"\n{corpus.id}: {len(corpus)} documents; index built in {building:.2f} s, opened in {opening:.3f} s")
    bank = RuleBank(corpus)
    rows = pq.read_table(corpus.folder / "queries.parquet").to_pylist()
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:n]]
    plain = [row["text"] for row in rows]
    guided = [f"{text} {rule.text}" for text in plain for rule in bank.match(text, 3)][:n]
    peers = {f"bm25s, {backend}": _peer(ours, len(corpus), backend) for backend in ("numba", "numpy")}
    tokens = _tokens(ours, plain[:2])
    print(f"numba's compilation: {_seconds(lambda: peers['bm25s, numba'].retrieve(tokens, k=k, **QUIET)):.1f} s")
    for name, asked in (("plain", plain), ("guided", guided)):
        _table(name, ours, peers, asked, k)


QUIET: dict[str, Any] = {"show_progress": False}


def _table(name: str, ours: BM25, peers: dict[str, Any], asked: Sequence[str], k: int) -> None:
    tokens = _tokens(ours, asked)
    engines: dict[str, Search] = {"ours": lambda: ours.search(asked, k)}
    for peer, engine in peers.items():
        engines[peer] = lambda engine=engine: engine.retrieve(tokens, k=k, **QUIET)  # type: ignore[misc]
        _compare(ours.search(asked, k), engine.retrieve(tokens, k=k, **QUIET).scores)
    best = dict.fromkeys(engines, float("inf"))
    for _ in range(ROUNDS):
        for engine, search in engines.items():
            best[engine] = min(best[engine], _seconds(search))
    for engine, seconds in best.items():
        ratio = seconds / best["ours"]
        print(f"{name:8}{engine:16}{len(asked) / seconds:>9.0f} queries/CPU s   ours is {ratio:.2f} times as fast")


def _compare(found: list[list[tuple[int, float]]], scores: Any) -> None:
    for ours, theirs in zip(found, scores, strict=True):
        wanted = [score for score in theirs.tolist() if score > 0]
        if not np.allclose([score for _, score in ours], wanted, rtol=1e-4):
            raise SystemExit(f"The engines disagree: {ours} and {wanted}")


def _peer(ours: BM25, documents: int, backend: str) -> Any:
    """bm25s over our index."""
    index = ours._index
    engine = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend=backend)
    engine.scores = {"data": index.weights, "indices": index.rows, "indptr": index.starts, "num_docs": documents}
    engine.vocab_dict = index.vocabulary
    engine.unique_token_ids_set, engine.nonoccurrence_array = set(index.vocabulary.values()), None
    return engine


def _tokens(ours: BM25, texts: Sequence[str]) -> list[list[int]]:
    known = ours._index.vocabulary
    return [[known[token] for token in tokenize(text) if token in known] for text in texts]


def _seconds(call: Search) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


if __name__ == "__main__":
    main()
