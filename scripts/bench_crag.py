"""How often the references of crag_hybrid contain a gold answer, by option of its retrieval; needs no generator.

    python scripts/bench_crag.py [--data_files FILE] [--encoder minilm]

Questions with a false premise are left out. A table or chunk contains an answer if it has it as whole words. The data
are CRAG's records with ``--data_files``, else the demo. Answers that must be computed are in no text, so the shares
compare options but do not say how many questions can be answered.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from lm_eval_rag.harness.core.asks import pages
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.scoring.judge.agreement import wilson
from lm_eval_rag.harness.scoring.normalise import has_words, normalise
from lm_eval_rag.methods.crag.chunks import best_sentences
from lm_eval_rag.methods.crag.page_tables import TableOrder, select_tables
from lm_eval_rag.methods.crag.rerank import reranked

PLAIN: dict[str, Any] = {"rerank": "off", "depth": 50, "best_pages": 0, "parents": False, "prompt_file": None}


def sentences_of(query: Query) -> Plan[Answer]:
    """The sentences of the official baseline."""
    return Answer("", (yield from best_sentences(query, (yield from pages()))))


def chunks_of(**options: Any) -> Callable[[Query], Plan[Answer]]:
    """The ten chunks."""

    def method(query: Query) -> Plan[Answer]:
        return Answer("", (yield from reranked(query, 10, [], **{**PLAIN, **options})))

    return method


def tables_of(order: TableOrder, best: int = 0) -> Callable[[Query], Plan[Answer]]:
    """Tables of at most 4000 characters, returned as notes."""

    def method(query: Query) -> Plan[Answer]:
        chunks = yield from reranked(query, 10, [], **PLAIN)
        shown = yield from select_tables(
            query, (yield from pages()), length=4000, chunks=chunks, order=order, best=best
        )
        return Answer("", notes=shown)

    return method


def main() -> None:
    """Print one line per option and retriever."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_files", help="CRAG's records (default: the demo)")
    parser.add_argument("--task", default="crag_task3", help="task of --data_files (default: crag_task3, all pages)")
    parser.add_argument("--encoder", help="model of a dense retriever, in addition to BM25")
    options = parser.parse_args()
    rows = _rows(options.task, options.data_files)
    queries = [Query(row["id"], row["query"], row["time"], row["corpus"]) for row in rows]
    golds = [[normalise(answer) for answer in row["answers"]] for row in rows]
    run(sentences_of, queries)  # reads the pages once, outside the timing
    retrieval_options = {
        "sentences of the baseline": sentences_of,
        "chunks": chunks_of(),
        "chunks, best_pages=10": chunks_of(best_pages=10),
        "chunks, parents": chunks_of(parents=True),
        "chunks, rerank=retriever": chunks_of(rerank="retriever"),
        "tables, table_order=pages": tables_of("pages"),
        "tables": tables_of("question"),
        "tables, best_tables=5": tables_of("question", 5),
    }
    for retriever in ("bm25", *(["dense"] if options.encoder else [])):
        extra = {"retriever": retriever} | (
            {"retriever_options": {"model": options.encoder}} if retriever != "bm25" else {}
        )
        for name, method in retrieval_options.items():
            began = time.perf_counter()
            results = _run(method, queries, **extra)
            hits = [_contains(answer, gold) for (answer, _), gold in zip(results, golds, strict=True)]
            low, high = wilson(sum(hits), len(hits))
            seconds = (time.perf_counter() - began) / len(hits)
            share = f"{sum(hits):3} of {len(hits)} [{low:.0%}, {high:.0%}]"
            print(f"{retriever:6} {name:28} {share}  {seconds:.2f} s/question")


def _run(method: Any, queries: list[Query], retriever: str, retriever_options: dict[str, Any] | None = None) -> Any:
    from lm_eval_rag.harness.backends.corpora import Corpora
    from lm_eval_rag.harness.core.journal import Journal
    from lm_eval_rag.harness.plugin.engine import Engine

    return Engine(Corpora(retriever, retriever_options or {}), None, Journal(None)).run(method, queries)


def _rows(task: str, data_files: str | None) -> list[dict[str, Any]]:
    from lm_eval_rag.tasks.crag.build import build
    from lm_eval_rag.tasks.crag.task import questions
    from lm_eval_rag.tasks.crag_demo.build import build as build_demo

    rows = questions(build(task, data_files=data_files) if data_files else build_demo())["test"]
    return [row for row in rows if row["question_type"] != "false_premise"]


def _contains(answer: Answer, golds: list[str]) -> bool:
    texts = [normalise(text) for text in (*(passage.text for passage in answer.passages), *answer.notes)]
    return any(has_words(text, gold) for text in texts for gold in golds)


if __name__ == "__main__":
    main()
