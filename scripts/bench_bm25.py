"""Queries per CPU second of BM25: numpy, numba, and bm25s' own retrieval with numba, over one index.

    python scripts/bench_bm25.py ruleqa_i ruleqa_f ruleqa_w --queries 300

``numpy`` and ``numba`` are the two searches of ``retriever=bm25``, which must give equal rows and scores. ``bm25s`` is
what it does by itself, in float32, with ties in no order; its scores are compared. ``--earlier FILE`` adds an earlier
``bm25.py``. Each answers the same questions, plain and with a rule (``rule``), in the order and the batches in which
``rule_guided`` asks for them in a run; bm25s gets tokens made beforehand. The engines take turns of one batch
(``--batch``, by default the most questions that a run has in flight), and each question is asked once. All use one
thread. ``repaid`` is the number of queries after
which numba has saved the seconds that it takes to start.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pyarrow.parquet as pq
from measures import Measure, write

from lm_eval_rag.harness.core.driver import WINDOW
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.retrieval import bm25
from lm_eval_rag.harness.retrieval.bm25 import BM25
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.tasks.ruleqa.build import build
from lm_eval_rag.tasks.ruleqa_demo.build import build as build_demo

START = """
import time
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import bm25
bm25.LONG, began = 0, time.process_time()
bm25.BM25(Corpus.of([Passage("a", "b c"), Passage("d", "e")])).search(["b"], 1)
print(time.process_time() - began)
"""
Search = Callable[[], Any]


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--queries", type=int, default=768)
    parser.add_argument("--batch", type=int, default=WINDOW)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--earlier", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    compiling, loading = start_seconds()
    print(f"numba starts in {compiling:.1f} CPU s where it compiles, in {loading:.1f} s where its code is on disk\n")
    names = ["numpy", "numba", "bm25s", *(["earlier"] if options.earlier else [])]
    columns = "".join(f"{name:>9}" for name in names)
    print(f"{'':21}{'documents':>10}{columns}   repaid: on disk   compiled")
    measures = []
    for task in options.tasks:
        corpus = open_corpus(build_demo() if task == "ruleqa_demo" else build(task))
        searches = engines(corpus, options.k, options.earlier)
        for kind, texts in questions(corpus, options.queries, options.batch).items():
            turns = cpu_seconds(searches, texts, options.batch)
            seconds = {name: sum(times) for name, times in turns.items()}
            check(searches, texts)
            faster = [peer / own for peer, own in zip(turns["bm25s"], turns["numba"], strict=True)]
            what = {"plain": "BM25, questions", "rule": "BM25, question + rule"}[kind]
            measures.append(Measure(f"{what}, {task}", "x bm25s' rate", faster))
            rates = "".join(f"{len(texts) / seconds[name]:>9,.0f}" for name in names)
            saved = (seconds["numpy"] - seconds["numba"]) / len(texts)
            work = [f"{start / saved:,.0f}" if saved > 0 else "never" for start in (loading, compiling)]
            print(f"{task:15}{kind:6}{len(corpus):>10,}{rates}{work[0]:>18}{work[1]:>11}", flush=True)
    write(options.json, measures, {**vars(options), "numba_starts": [compiling, loading]})


def start_seconds() -> tuple[float, float]:
    """CPU seconds until the first search by numba, with its import: when it compiles, and when its code is on disk."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        runs = [subprocess.check_output([sys.executable, "-c", START], env=environment, text=True) for _ in range(2)]
    return float(runs[0]), float(runs[1])


def questions(corpus: Corpus, n: int, batch: int) -> dict[str, list[str]]:
    """Questions of the set, and, for one batch of them after the other, those with a first, a second, a third rule."""
    assert corpus.folder is not None
    texts = pq.read_table(corpus.folder / "queries.parquet").column("text").to_pylist()
    bank, guided = RuleBank(corpus), list[str]()
    for start in range(0, len(texts), batch):
        ruled = [(text, bank.match(text, 3)) for text in texts[start : start + batch]]
        guided += [f"{text} {rules[i].text}" for i in range(3) for text, rules in ruled if i < len(rules)]
    return {"plain": texts[:n], "rule": guided[:n]}


def engines(corpus: Corpus, k: int, earlier: Path | None) -> dict[str, Callable[[Sequence[str]], Search]]:
    """By name, what prepares a search for texts."""
    BM25(corpus)  # builds the index
    by_numpy, by_numba, peer = BM25(corpus), BM25(corpus), peer_of(corpus)
    by_numpy.__dict__["_compiled"] = None  # else it would use numba once that has been started
    bm25.LONG = 0

    def ours(retriever: BM25, texts: Sequence[str]) -> Search:
        return lambda: retriever.search(texts, k)

    def theirs(texts: Sequence[str]) -> Search:
        tokens = [by_numpy._index.numbers(text, "split") for text in texts]
        return lambda: peer.retrieve(tokens, k=k, show_progress=False)

    searches: dict[str, Callable[[Sequence[str]], Search]] = {
        "numpy": partial(ours, by_numpy),
        "numba": partial(ours, by_numba),
        "bm25s": theirs,
    }
    if earlier:
        old = module(earlier).BM25(corpus)
        searches["earlier"] = lambda t: lambda: old.search(t, k)
    return searches


def peer_of(corpus: Corpus) -> Any:
    """bm25s over our index."""
    index = BM25(corpus)._index
    engine = bm25s.BM25(method="lucene", backend="numba")
    arrays = {"data": index.weights, "indices": index.rows, "indptr": index.starts}
    engine.scores, engine.nonoccurrence_array = {**arrays, "num_docs": len(corpus)}, None
    engine.unique_token_ids_set = range(len(index.vocabulary))
    return engine


def module(path: Path) -> Any:
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(f"earlier_{path.stem}", path)
    assert spec and spec.loader
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def check(searches: dict[str, Callable[[Sequence[str]], Search]], texts: Sequence[str]) -> None:
    """Stop unless our engines agree float by float, and bm25s' float32 scores up to their rounding."""
    found = {name: prepare(texts)() for name, prepare in searches.items()}
    for name in found.keys() - {"bm25s"}:
        if found[name] != found["numpy"]:
            raise SystemExit(f"{name} and numpy differ.")
    for ranking, scores in zip(found["numpy"], found["bm25s"].scores, strict=True):
        if not np.allclose([score for _, score in ranking], scores[scores > 0], rtol=1e-4):
            raise SystemExit(f"bm25s and numpy differ: {ranking} and {scores}")


def cpu_seconds(
    searches: dict[str, Callable[[Sequence[str]], Search]], texts: Sequence[str], batch: int
) -> dict[str, list[float]]:
    """CPU seconds of each engine for every batch of texts, which all engines search one after the other."""
    turns: dict[str, list[float]] = {name: [] for name in searches}
    names = list(searches)
    for prepare in searches.values():
        prepare(texts[:1])()  # compiles, and builds what is built once
    for turn, start in enumerate(range(0, len(texts), batch)):
        first = turn % len(names)  # the first finds the index in no cache of the processor
        for name in names[first:] + names[:first]:
            search = searches[name](texts[start : start + batch])
            began = time.process_time()
            search()
            turns[name].append(time.process_time() - began)
    return turns


if __name__ == "__main__":
    main()
