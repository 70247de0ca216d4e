"""Runs CRAG's methods with a scripted teacher over freshly drawn worlds, and records every prompt with its reply.

    python scripts/tiny_crag/make_crag_rows.py --out tiny-crag/rows.jsonl --worlds 30
    python scripts/tiny_steps/train_steps.py --rows tiny-crag/rows.jsonl --out harness/generators/crag_tiny \\
           --work tiny-crag --methods crag --exercises 0 --longest 1900 --tokens 4000 --minutes 80

The teacher is the reader without mistakes of scripts/crag_reader.py: it knows the gold answers, gives one if the
references state it, and "I don't know" otherwise. Its reasoning is the question once more, and it writes answers in the
letters of the references. A line of the file is one prompt: {"method": "crag", "rows": [[its name, prompt, reply]]}.
Seeds are from 1,000 on; seed 0 is the benchmark's world, whose questions have the same forms.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crag_reader import DONT_KNOW, STEPS, Reader
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
KEPT = {"static_or_dynamic": 0.4, "knowledge": 0.2}  # share of the rows of a kind that are learned soon
SILENT = 0.4  # of rows that say nothing, which are the half of some kinds
NAMES = ("market_identifier", "movie_name", "person", "artist_name", "song_name", "team", "main_entity")
AGAIN = {"fields": 3}  # how often the rows of a kind stand in the file; few questions need it


class Teacher(Reader):
    """The reader, which records what it is asked, and has the embedded generator's context."""

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
        """The question once more, so that the answer stands right after it, as in prompts without the form."""
        return f"- {record.query}"

    def reply(self, prompt: str) -> str:
        """As the reader's, with names in the letters of the question."""
        reply = super().reply(prompt)
        if self.asked(prompt)[0] != "fields":
            return reply
        return json.dumps({key: text.lower() if key in NAMES else text for key, text in json.loads(reply).items()})

    def count_tokens(self, text: str) -> int:
        """By the tokenizer."""
        return len(self.tokenizer.encode(text))

    def room(self, max_tokens: int) -> int:  # type: ignore[override]
        """Of a prompt."""
        return CONTEXT - max_tokens


def ways(rng: random.Random) -> tuple[Any, dict[str, Any]]:
    """A method, with the arguments of a step of the ladder; short prompts are read, and learned, faster."""
    place = rng.randrange(-1, len(STEPS))
    if place < 0:
        return crag_rag_baseline, {}
    drawn = {"dynamic": rng.choice(("decline", "answer")), "k": rng.choice((2, 3, 5, 10)),
             "table_length": rng.choice((600, 1500, 4000))}  # fmt: skip
    switches = {name: i <= place for i, name in enumerate(STEPS)}
    return crag_hybrid, {**switches, **drawn, "samples": 1, "reasoning_tokens": 128}


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
        if rng.random() < KEPT.get(name, 1.0) * (SILENT if DONT_KNOW in reply or not reply else 1.0):
            yield from [{"method": "crag", "rows": [[name, prompt, reply]]}] * AGAIN.get(name, 1)


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
