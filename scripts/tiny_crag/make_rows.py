"""Runs CRAG's methods with a scripted teacher over freshly drawn worlds, and records every prompt with its reply.

    python scripts/tiny_crag/make_rows.py --out tiny-crag/rows.jsonl --worlds 24
    python scripts/tiny_steps/train_steps.py --rows tiny-crag/rows.jsonl --out harness/generators/crag_tiny \
           --work tiny-crag --methods crag --exercises 0 --longest 1900 --minutes 50

The teacher is the reader without mistakes of scripts/crag_reader.py: it knows the gold answers, gives one if the
references state it, and "I don't know" otherwise. Its reasoning quotes the line of the references that states the
answer. A line of the file is one prompt: {"method": "crag", "rows": [[prompt's name, prompt, reply]]}. Seeds are from
1,000 on; seed 0 is the benchmark's world, whose questions have the same forms.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crag_reader import DONT_KNOW, INVALID, STEPS, Reader
from transformers import AutoTokenizer

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import bind
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.data.page_store import SEPARATOR
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.plugin.engine import Engine
from lm_eval_rag.methods.crag_hybrid import crag_hybrid
from lm_eval_rag.methods.crag_rag_baseline import crag_rag_baseline
from lm_eval_rag.tasks.crag.schema import Record, parse
from lm_eval_rag.tasks.crag_demo.build import build, lines
from lm_eval_rag.tasks.crag_demo.world import World, make_world

BASE = Path(__file__).resolve().parents[2] / "harness" / "generators" / "rulerag_tiny"
FIRST_SEED = 1000
CONTEXT = 2048  # tokens of the embedded generator
QUOTED = 200  # characters of a quotation at most, so that the form ends within 128 tokens


class Teacher(Reader):
    """The reader, who quotes, records what it is asked, and has the embedded generator's context."""

    def __init__(self, records: Sequence[Record], world: World) -> None:
        super().__init__(records, world)
        self.tokenizer = AutoTokenizer.from_pretrained(BASE)
        self.rows: dict[str, tuple[str, str]] = {}  # prompt -> its name and the reply

    def generate(self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[str]:
        """The replies, which are recorded."""
        replies = super().generate(prompts, decoding, samples)
        for prompt, reply in zip(prompts, replies, strict=True):
            self.rows[prompt] = self.asked(prompt)[0], reply
        return replies

    def answered(self, answer: str, shown: str) -> str:
        """The answer in the letters of the references."""
        at = shown.lower().find(answer.lower())
        return shown[at : at + len(answer)] if at >= 0 else answer

    def because(self, answer: str, record: Record, shown: str) -> str:
        """The sentence or row that states the answer, of several the one with most words of the question."""
        if answer == DONT_KNOW:
            return "- The references do not tell."
        if answer == INVALID:
            return "- The question takes for granted what is not so."
        words = set(re.findall(r"\w+", record.query.lower()))
        units = [unit.strip() for line in shown.splitlines() for unit in re.split(r"(?<=[.!?]) ", line)]
        stating = [unit for unit in units if answer.lower() in unit.lower() and len(unit) <= QUOTED]
        best = max(stating, key=lambda unit: len(words & set(re.findall(r"\w+", unit.lower()))), default="")
        return f"- {best.removeprefix('Text: ')}" if best else "- It follows from the references."

    def count_tokens(self, text: str) -> int:
        """By the tokenizer."""
        return len(self.tokenizer.encode(text))

    def room(self, max_tokens: int) -> int:  # type: ignore[override]
        """Of a prompt."""
        return CONTEXT - max_tokens


def ways(rng: random.Random) -> tuple[Any, dict[str, Any]]:
    """A method, with the arguments of a step of the ladder."""
    place = rng.randrange(-1, len(STEPS))
    if place < 0:
        return crag_rag_baseline, {}
    dynamic = rng.choice(("decline", "answer"))
    switches = {name: i <= place for i, name in enumerate(STEPS)}
    return crag_hybrid, {**switches, "samples": 1, "reasoning_tokens": 128, "dynamic": dynamic}


def rows_of(seed: int) -> Iterator[dict[str, Any]]:
    """The rows of one world: each question by two steps of the ladder."""
    rng = random.Random(f"crag rows {seed}")
    records = [parse(line, f"question {n}") for n, line in enumerate(lines(seed))]
    corpus, teacher = build(seed), Teacher(records, make_world(seed))
    for _ in range(2):
        by_way: dict[str, tuple[Any, dict[str, Any], list[Query]]] = {}
        for record in records:
            method, arguments = ways(rng)
            query = Query(record.id, record.query, record.time, f"{corpus}{SEPARATOR}{record.id}")
            by_way.setdefault(repr(arguments), (method, arguments, []))[2].append(query)
        for method, arguments, queries in by_way.values():
            Engine(Corpora(), teacher, Journal(None, "teacher")).run(bind(method, arguments), queries, name="rows")
    for prompt, (name, reply) in teacher.rows.items():
        yield {"method": "crag", "rows": [[name, prompt, reply]]}


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--worlds", type=int, default=24)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    args = parser.parse_args()
    logging.disable(logging.INFO)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", encoding="utf-8") as file:
        for seed in range(args.seed, args.seed + args.worlds):
            written = [file.write(json.dumps(row) + "\n") for row in rows_of(seed)]
            print(f"world {seed}: {len(written)} rows", flush=True)


if __name__ == "__main__":
    main()
