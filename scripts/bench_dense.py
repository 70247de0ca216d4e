"""Documents and queries per CPU second of the dense retriever, compared with sentence-transformers.

    python scripts/bench_dense.py ruleqa_i --documents 2000 --queries 500

The comparison uses ``SentenceTransformer(folder).encode(texts)`` with its defaults (float32, batches of 32); its search
is the product of all vectors and numpy's argpartition. Ours encodes documents in float32 and in bfloat16. Both search
the same documents, and the time includes the encoding of the queries. The engines take turns and the best round counts.
CPU seconds are used, because other processes affect them least.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.retrieval import nearest
from lm_eval_rag.harness.retrieval.encoders import Overrides, towers
from lm_eval_rag.harness.retrieval.towers import Encoder
from lm_eval_rag.tasks.ruleqa.build import build

ROUNDS = 3
K = 10


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("task")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    corpus = open_corpus(build(options.task))
    rng = np.random.default_rng(0)
    texts = [corpus.texts[row] for row in rng.permutation(len(corpus))[: options.documents]]
    queries = _queries(corpus, rng, options.queries)
    _encoding(options.model, texts)
    _searching(options.model, texts, queries)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _queries(corpus: Corpus, rng: Any, n: int) -> list[str]:
    assert corpus.folder is not None
    texts = pq.read_table(corpus.folder / "queries.parquet")["text"].to_pylist()
    return [texts[i] for i in rng.permutation(len(texts))[:n]]


def _encoding(model: str, texts: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    tower = towers(model, None, None, Overrides())[1]
    plain = SentenceTransformer(str(tower.checkpoint.folder))
    encoders = {dtype: Encoder(tower, dtype=dtype) for dtype in ("float32", "bfloat16")}
    engines: dict[str, Callable[[], Any]] = {"sentence-transformers": lambda: plain.encode(texts)}
    engines |= {f"ours, {name}": lambda encoder=encoder: encoder.encode(texts) for name, encoder in encoders.items()}
    reference = plain.encode(texts)
    reference /= np.linalg.norm(reference, axis=1, keepdims=True)
    for name, encoder in encoders.items():
        cosines = (encoder.encode(texts) * reference).sum(1)
        print(f"minimum cosine of ours, {name}, with sentence-transformers: {cosines.min():.6f}")
    _table("documents", engines, len(texts))


def _searching(model: str, texts: list[str], queries: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    tower, documents = towers(model, None, None, Overrides())
    plain, encoder = SentenceTransformer(str(tower.checkpoint.folder)), Encoder(tower)
    vectors = Encoder(documents, dtype="bfloat16").encode(texts)
    stored, candidates = vectors.astype(np.float16), nearest.flat(vectors.astype(np.float16))

    def theirs() -> Any:
        scores = plain.encode(queries) @ vectors.T
        return np.argpartition(-scores, K, axis=1)[:, :K]

    def ours() -> Any:
        return nearest.search(stored, candidates, encoder.encode(queries), K, exact=True)

    _table("queries", {"sentence-transformers": theirs, "ours": ours}, len(queries))


def _table(unit: str, engines: dict[str, Callable[[], Any]], n: int) -> None:
    best = dict.fromkeys(engines, float("inf"))
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            began = time.process_time()
            engine()
            best[name] = min(best[name], time.process_time() - began)
    peer = best["sentence-transformers"]
    for name, seconds in best.items():
        print(f"{unit:10}{name:24}{n / seconds:>8.0f} per CPU second   {peer / seconds:.2f} x sentence-transformers")


if __name__ == "__main__":
    main()
