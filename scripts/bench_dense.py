"""Documents and queries a second of the dense retriever beside sentence-transformers called plainly, in one run.

    python scripts/bench_dense.py ruleqa_i --documents 2000 --queries 500

Plainly is ``SentenceTransformer(folder).encode(texts)`` with its defaults (float32, batches of 32), and for a search
the product of all vectors and numpy's argpartition. Ours encodes documents in float32 and in bfloat16; both search over
the same documents, the encoding of the queries included. Engines take turns and the best of the rounds counts; CPU
seconds are counted, which other processes disturb least.
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
    given = parser.parse_args()
    corpus = open_corpus(build(given.task))
    rng = np.random.default_rng(0)
    texts = [corpus.texts[row] for row in rng.permutation(len(corpus))[: given.documents]]
    queries = _queries(corpus, rng, given.queries)
    _encoding(given.model, texts)
    _searching(given.model, texts, queries)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _queries(corpus: Corpus, rng: Any, n: int) -> list[str]:
    assert corpus.folder is not None
    asked = pq.read_table(corpus.folder / "queries.parquet")["text"].to_pylist()
    return [asked[i] for i in rng.permutation(len(asked))[:n]]


def _encoding(model: str, texts: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    tower = towers(model, None, None, Overrides())[1]
    plain = SentenceTransformer(str(tower.checkpoint.folder))
    encoders = {dtype: Encoder(tower, dtype=dtype) for dtype in ("float32", "bfloat16")}
    engines: dict[str, Callable[[], Any]] = {"sentence-transformers": lambda: plain.encode(texts)}
    engines |= {f"ours, {name}": lambda made=made: made.encode(texts) for name, made in encoders.items()}
    reference = plain.encode(texts)
    reference /= np.linalg.norm(reference, axis=1, keepdims=True)
    for name, made in encoders.items():
        print(f"least cosine of ours, {name}, with it: {(made.encode(texts) * reference).sum(1).min():.6f}")
    _table("documents", engines, len(texts))


def _searching(model: str, texts: list[str], queries: list[str]) -> None:
    from sentence_transformers import SentenceTransformer

    tower, documents = towers(model, None, None, Overrides())
    plain, made = SentenceTransformer(str(tower.checkpoint.folder)), Encoder(tower)
    vectors = Encoder(documents, dtype="bfloat16").encode(texts)
    kept, candidates = vectors.astype(np.float16), nearest.flat(vectors.astype(np.float16))

    def theirs() -> Any:
        scores = plain.encode(queries) @ vectors.T
        return np.argpartition(-scores, K, axis=1)[:, :K]

    def ours() -> Any:
        return nearest.search(kept, candidates, made.encode(queries), K, exact=True)

    _table("queries", {"sentence-transformers": theirs, "ours": ours}, len(queries))


def _table(what: str, engines: dict[str, Callable[[], Any]], n: int) -> None:
    best = dict.fromkeys(engines, float("inf"))
    for _ in range(ROUNDS):
        for name, run in engines.items():
            began = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - began)
    peer = best["sentence-transformers"]
    for name, seconds in best.items():
        print(f"{what:10}{name:24}{n / seconds:>8.0f} a CPU second   {peer / seconds:.2f} times its speed")


if __name__ == "__main__":
    main()
