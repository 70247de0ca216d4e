"""Runs the methods with the scripted teacher over freshly drawn worlds, and records every prompt with its reply.

    python scripts/tiny_steps/make_rows.py --out tiny-steps/rows.jsonl --groups 6000

A group is one line: rows of one method over the same passages (a scene) or about one question (all passages of a world,
BM25), so that its prompts have long common beginnings. Seeds are from 1,000 on; seed 0 is the benchmark's world.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scenes import scene
from teacher import Teacher

from lm_eval_rag._register import method_of
from lm_eval_rag.harness.core.types import SHORT, Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.retrieval import RETRIEVERS
from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning, draw
from lm_eval_rag.tasks.reasoning_demo.world import Part, make_parts

FIRST_SEED = 1000
SCENES = 48  # of each world
REAL = 16  # questions of each world that are asked over all its passages
# method -> (share of the groups, parameters that keep its number of equal calls low)
MIX: dict[str, tuple[float, dict[str, Any]]] = {
    "ircot": (5, {}),
    "search_agent": (6, {}),
    "iter_retgen": (4, {}),
    "standard_rag": (2, {}),
    "standard_prompting": (0.1, {}),
    "think_then_act": (0.5, {}),
    "chain_of_knowledge": (1, {"samples": 2}),
    "verify_and_edit": (0.3, {"samples": 2}),
    "self_rag": (0.1, {"segments": 4, "beam": 1, "threshold": -1.0}),
    "tree_of_thoughts": (0.1, {"thoughts": 2, "breadth": 1, "votes": 1}),
    "crp_rag": (0.1, {"samples": 1, "structure": "chain"}),
}
WHOLE = ("ircot", "iter_retgen", "standard_rag", "think_then_act", "verify_and_edit", "chain_of_knowledge", "crp_rag")


class Shelf:
    """A retriever that returns all passages in their order, whatever is asked."""

    def __init__(self, corpus: Corpus) -> None:
        self.size = len(corpus)
        self.fingerprint = f"shelf {corpus.fingerprint}"

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """The first ``k`` rows for each text."""
        return [[(row, 0.0) for row in range(min(k, self.size))] for _ in texts]


def shelf(corpus: Corpus) -> Shelf:
    """The entry in the table of retrievers."""
    return Shelf(corpus)


def record(
    method: str, part: Part, titles: Sequence[str], questions: Sequence[Reasoning], retriever: str, **more: Any
) -> Teacher:
    """The teacher after a method has asked it all that it asks."""
    teacher = Teacher(part, questions, reads=True)
    pages = {page.title: page for page in part.pages}
    corpus = [Passage(title, pages[title].text) for title in titles]
    queries = [Query(f"q{number}", question.text, answer_form=SHORT) for number, question in enumerate(questions)]
    run(method_of(method), queries, corpus=corpus, generator=teacher, retriever=retriever, **more)
    return teacher


def groups_of(seed: int) -> list[dict[str, Any]]:
    """All groups of one world: {"method", "rows": [[step, prompt, reply], ...]}."""
    rng, (part, _) = random.Random(f"rows {seed}"), make_parts(seed)
    questions, groups = draw(rng, part, 0.5), []
    for _ in range(SCENES):
        method = _drawn(rng)
        whole = method in WHOLE
        titles, about = scene(rng, part, questions=6 if whole else 2)
        more = {**MIX[method][1], **({"k": 20} if whole else {})}
        if method == "ircot":
            more["reader"] = rng.choice(("cot", "cot", "direct"))
        if method == "iter_retgen" and rng.random() < 0.2:
            more["variant"] = "flashrag"
        groups.append(_group(method, record(method, part, titles, about, "shelf" if whole else "bm25", **more)))
    for question in questions[:REAL]:
        method = _drawn(rng)
        groups.append(_group(method, record(method, part, list(part.facts), [question], "bm25", **MIX[method][1])))
    return groups


def _drawn(rng: random.Random) -> str:
    return rng.choices(list(MIX), [share for share, _ in MIX.values()])[0]


def _group(method: str, teacher: Teacher) -> dict[str, Any]:
    return {"method": method, "rows": list(dict.fromkeys(teacher.rows))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--groups", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    args = parser.parse_args()
    logging.disable(logging.INFO)
    RETRIEVERS["shelf"] = shelf
    args.out.parent.mkdir(parents=True, exist_ok=True)
    written, seed = 0, args.seed
    with args.out.open("w", encoding="utf-8") as file:
        while written < args.groups:
            for group in groups_of(seed):
                file.write(json.dumps(group) + "\n")
                written += 1
            seed += 1
    print(f"{written} groups of worlds {args.seed} to {seed - 1}")


if __name__ == "__main__":
    main()
