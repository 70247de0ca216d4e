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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from measures import Measure, ratios, write

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
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    corpus = open_corpus(build(options.task))
    rng = np.random.default_rng(0)
    texts = [corpus.texts[row] for row in rng.permutation(len(corpus))[: options.documents]]
    queries = _queries(corpus, rng, options.queries)
    measures = [*_encoding(options.model, texts), *_searching(options.model, texts, queries)]
    write(options.json, measures, vars(options))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _queries(corpus: Corpus, rng: Any, n: int) -> list[str]:
    assert corpus.folder is not None
    texts = pq.read_table(corpus.folder / "queries.parquet")["text"].to_pylist()
    return [texts[i] for i in rng.permutation(len(texts))[:n]]


def _encoding(model: str, texts: list[str]) -> list[Measure]:
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
    return _table("documents", engines, len(texts))


def _searching(model: str, texts: list[str], queries: list[str]) -> list[Measure]:
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

    return _table("queries", {"sentence-transformers": theirs, "ours": ours}, len(queries))


def _table(unit: str, engines: dict[str, Callable[[], Any]], n: int) -> list[Measure]:
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            began = time.process_time()
            engine()
            seconds[name].append(time.process_time() - began)
    peer, measures = seconds["sentence-transformers"], []
    for name, own in seconds.items():
        rates = f"{n / min(own):>8.0f} per CPU second   {min(peer) / min(own):.2f} x sentence-transformers"
        print(f"{unit:10}{name:24}{rates}")
        measures.append(Measure(f"{unit} encoded, {name}", "x sentence-transformers' rate", ratios(peer, own)))
    return [measure for measure in measures if "sentence" not in measure.name]


if __name__ == "__main__":
    main()
