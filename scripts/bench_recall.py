"""Object recall@k of BM25 on RuleQA: without rules, with rules, and with every control. Prints one table per set.

    python scripts/bench_recall.py ruleqa_i ruleqa_f --k 10 --rules 3
    python scripts/bench_recall.py ruleqa_i ruleqa_i_natural --no-rules

A question is a hit if a gold answer is the object of one of the first k documents. ``pooled`` uses the whole union; its
mean size is printed too. A row says which rules are used and how they are joined to the question: the whole rule, as in
the paper; its body; or its body in place of its head.

    python scripts/bench_recall.py hotpotqa_200 2wikimultihopqa_500

Tasks over Wikipedia have no rules: bench_evidence.py measures evidence recall and recall of several retrievers there.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.parquet as pq
from bench_evidence import bench_evidence

from lm_eval_rag._build import corpus_of
from lm_eval_rag.harness.core.asks import RuleControl
from lm_eval_rag.harness.core.types import Passage, Rule
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.retrieval.bm25 import BM25
from lm_eval_rag.harness.retrieval.fusion import reciprocal_rank, round_robin
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.harness.rules.variants import variants
from lm_eval_rag.tasks.wikipedia.specs import TASKS as WIKIPEDIA

SLICES = ("all", "direct", "reverse", "rule_required", "other_link", "nowhere")
FORMS: dict[str, Callable[[str, Rule], str]] = {
    "whole rule": lambda text, rule: f"{text} {rule.text}",
    "body": lambda text, rule: f"{text} {rule.body}",
    "body instead of head": lambda text, rule: text.replace(rule.head, rule.body),
}
CONTROLS: tuple[RuleControl, ...] = ("selected", "random", "shuffled", "oracle")
Merge = Callable[[list[Sequence[Passage]]], tuple[Passage, ...]]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rules", type=int, default=3)
    parser.add_argument("--hard", action="store_true", help="all rule_required queries instead of Q")
    parser.add_argument("--no-rules", action="store_true", help="only the question as it is, as standard_rag retrieves")
    options = parser.parse_args()
    wikipedia = [task for task in options.tasks if task.partition(":")[0] in WIKIPEDIA]
    if wikipedia:
        bench_evidence(wikipedia)
    for task in [task for task in options.tasks if task not in wikipedia]:
        bench(task, options.k, options.rules, options.hard, options.no_rules)


def bench(task: str, k: int, n: int, hard: bool, no_rules: bool) -> None:
    """Print the table of one set."""
    corpus = open_corpus(corpus_of(task))
    assert corpus.questions is not None
    rows = pq.read_table(corpus.questions / "queries.parquet").to_pylist()
    rows = [row for row in rows if row["in_hard" if hard else "in_main"]]
    bank, retriever = RuleBank(corpus), BM25(corpus)
    print(f"\n{task}: {len(corpus)} documents, {len(rows)} queries, k={k}, {n} rules; {_recognised(bank, rows)}")
    print(f"{'':32}" + "".join(f"{name:>16}" for name in SLICES) + f"{'pooled all':>14}{'documents':>11}")

    def line(name: str, requests: list[list[str]], merge: Merge) -> None:
        rankings = iter(retriever.search([text for texts in requests for text in texts], k))
        lists = [[[corpus.passage(*hit) for hit in next(rankings)] for _ in texts] for texts in requests]
        _print(name, rows, [merge(ranked) for ranked in lists], k)

    line("no rules", [[row["text"]] for row in rows], round_robin)
    if no_rules:
        return
    unguided = [list(variants(row["text"], n)) for row in rows]
    line("no rules, variants fused", unguided, reciprocal_rank)
    line("no rules, variants round robin", unguided, round_robin)
    for control in CONTROLS:
        chosen = [bank.match(row["text"], n, control=control, gold=row["answers"]) for row in rows]
        for name, form in FORMS.items() if control == "selected" else list(FORMS.items())[:2]:
            guided = [_guided(row["text"], rules, form) for row, rules in zip(rows, chosen, strict=True)]
            line(f"{control}: {name}", guided, round_robin)
            if control == "selected":
                own = [[row["text"], *texts[: n - 1]] for row, texts in zip(rows, guided, strict=True)]
                line("  question + one rule fewer", own, round_robin)


def _recognised(bank: RuleBank, rows: Sequence[dict[str, Any]]) -> str:
    """How often the bank recognises the subject and the relation of a question."""
    recognised = [bank.recognise(row["text"]) for row in rows]
    subjects = [text.subject == row["subject"] for text, row in zip(recognised, rows, strict=True)]
    relations = [text.relation == row["relation"] for text, row in zip(recognised, rows, strict=True)]
    both = [subject and relation for subject, relation in zip(subjects, relations, strict=True)]
    shares = {"subject": subjects, "relation": relations, "both": both}
    return "recognised " + ", ".join(f"{name} {sum(hits) / max(len(hits), 1):.3f}" for name, hits in shares.items())


def _guided(text: str, rules: Sequence[Rule], form: Callable[[str, Rule], str]) -> list[str]:
    return [form(text, rule) for rule in rules] or [text]


def _print(name: str, rows: list[dict[str, Any]], ranked: list[tuple[Passage, ...]], k: int) -> None:
    hits = [_hit(row, passages[:k]) for row, passages in zip(rows, ranked, strict=True)]
    parts = {
        slice: [h for h, row in zip(hits, rows, strict=True) if slice in ("all", row["slice"])] for slice in SLICES
    }
    cells = "".join(f"{_percent(part):>9.1f} ({len(part):>4})" for part in parts.values())
    pooled = _percent([_hit(row, passages) for row, passages in zip(rows, ranked, strict=True)])
    size = sum(map(len, ranked)) / len(ranked)
    print(f"{name:32}{cells}{pooled:>14.1f}{size:>11.1f}", flush=True)


def _hit(row: dict[str, Any], passages: Sequence[Passage]) -> bool:
    return any(passage.fact is not None and passage.fact[2] in row["answers"] for passage in passages)


def _percent(hits: list[bool]) -> float:
    return 100 * sum(hits) / len(hits) if hits else math.nan


if __name__ == "__main__":
    main()
