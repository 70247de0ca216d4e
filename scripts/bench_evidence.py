"""Retrieval on the tasks over Wikipedia: evidence recall@k and recall@k with 95 % intervals, and trivial baselines.

Used by bench_recall.py. Evidence recall@k is the share of a question's gold passages among the first k; recall@k is the
share of questions whose answer stands in them as whole words, and is unscored for labels, yes and no.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow.parquet as pq

from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.report.stats import interval
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.scoring.case import Case, read_case
from lm_eval_rag.harness.scoring.evidence import evidence_recall
from lm_eval_rag.harness.scoring.retrieval import recall

CUTOFFS = (1, 2, 5, 10, 20)
DEPTH = max(CUTOFFS)
UNSCORED = "–"
FULL = "python scripts/bench_recall.py hotpotqa"
SCORES: dict[str, Callable[[Case, int], float | None]] = {"evidence recall": evidence_recall, "recall": recall}
Search = Callable[[Sequence[str]], list[list[int]]]


def random_passages(corpus: Corpus) -> Search:
    """Passages drawn without looking at the question."""
    rng = random.Random(0)
    return lambda texts: [rng.sample(range(len(corpus)), min(DEPTH, len(corpus))) for _ in texts]


def title_match(corpus: Corpus) -> Search:
    """Passages whose title stands in the question as whole words, the longest title first, ties by row.

    What stands in brackets at the end of a title is left out, as in "Halo (2007 film)".
    """
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, text in enumerate(corpus.texts):
        title = _words(re.sub(r"\s*\([^)]*\)$", "", text.partition("\n")[0]))
        if title:
            rows.setdefault(title, []).append(row)
    longest = max(map(len, rows), default=0)

    def search(texts: Sequence[str]) -> list[list[int]]:
        rankings = []
        for words in map(_words, texts):
            spans = {words[i : i + n] for n in range(1, longest + 1) for i in range(len(words) - n + 1)}
            titles = sorted((span for span in spans if span in rows), key=lambda span: (-len(" ".join(span)), span))
            rankings.append([row for title in titles for row in rows[title]][:DEPTH])
        return rankings

    return search


def retriever(name: str, **options: Any) -> Callable[[Corpus], Search]:
    """A retriever of the registry."""

    def over(corpus: Corpus) -> Search:
        made = make_retriever(name, corpus, **options)
        return lambda texts: [[row for row, _ in ranking] for ranking in made.search(texts, DEPTH)]

    return over


SYSTEMS: dict[str, Callable[[Corpus], Search]] = {
    "random passages": random_passages,
    "title match": title_match,
    "bm25": retriever("bm25"),
    "static": retriever("static"),
    "MiniLM": retriever("dense", model="minilm"),
    "bm25 + MiniLM": retriever("hybrid", first="bm25", second="dense", second_model="minilm"),
}


def bench_evidence(tasks: Iterable[str]) -> None:
    """Measure all systems on the tasks and print one Markdown table a score."""
    rows: dict[str, list[str]] = {score: [] for score in SCORES}
    for task in tasks:
        corpus, questions = _load(task)
        for system, over in SYSTEMS.items():
            began = time.perf_counter()
            rankings = over(corpus)([question["query"] for question in questions])
            seconds = time.perf_counter() - began
            cases = [_case(corpus, *one) for one in zip(questions, rankings, strict=True)]
            for score, function in SCORES.items():
                cells = [_cell([function(case, k) for case in cases]) for k in CUTOFFS]
                if set(cells) == {UNSCORED}:
                    continue
                rows[score].append(f"| `{task}` | {system} | {' | '.join(cells)} |")
            print(f"{task}: {system}, {len(questions)} questions, {len(corpus)} passages, {seconds:.0f} s", flush=True)
    for score, lines in rows.items():
        print(f"\n| task | retriever | {' | '.join(f'{score}@{k}' for k in CUTOFFS)} |")
        print("|---|---|" + "---:|" * len(CUTOFFS))
        print("\n".join(lines))
    print(f"\nFull pooled HotpotQA (66,581 paragraphs, a download of 27 MB): {FULL}")
    print("Published for pooled HotpotQA: MiniLM evidence recall@5 / @10 0.633 / 0.700, bge-m3 0.784 / 0.835.")
    print("2WikiMultihopQA with known gold: python scripts/bench_recall.py 2wikimultihopqa_hipporag")


def _load(task: str) -> tuple[Corpus, list[dict[str, Any]]]:
    """The corpus of a task (``TASK`` or ``TASK:CORPUS``), and its questions: those with known gold, if any has it."""
    from lm_eval_rag.tasks.wikipedia.build import build

    name, _, choice = task.partition(":")
    folder = cache_dir() / build(name, corpus=choice or None)
    rows = pq.read_table(folder / "queries.parquet").to_pylist()
    questions = [row for row in rows if row["gold"]] or rows
    (corpus,) = {question["corpus"] for question in questions}
    return open_corpus(corpus), questions


def _case(corpus: Corpus, question: dict[str, Any], rows: Sequence[int]) -> Case:
    passages = corpus.passages([(row, 0.0) for row in rows])
    listed = [{"id": passage.id, "text": passage.text} for passage in passages]
    return read_case(question, "", {"passages": listed, "k": DEPTH})


def _cell(scores: Sequence[float | None]) -> str:
    """Mean and interval; the number of questions is that with a score."""
    scored = [score for score in scores if score is not None]
    if not scored:
        return UNSCORED
    one = interval(scored)
    return f"{one.mean:.3f}" if one.low is None else f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.lower()))
