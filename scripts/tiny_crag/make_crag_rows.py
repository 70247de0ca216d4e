"""Runs CRAG's methods with a scripted teacher over freshly drawn worlds, and records every prompt with its reply.

    python scripts/tiny_crag/make_crag_rows.py --out tiny-crag/rows.jsonl --worlds 30
    python scripts/tiny_steps/train_steps.py --rows tiny-crag/rows.jsonl --out harness/generators/crag_tiny \\
           --work tiny-crag --methods crag --exercises 0 --longest 1900 --limit 2300 --tokens 5000 --minutes 170

The teacher is the reader without mistakes of scripts/crag_reader.py: it knows the gold answers, gives one if the
references state it, and "I don't know" otherwise. Its reasoning is the question once more, and it writes answers in the
letters of the references. A line of the file is a group of prompts that begin alike, {"method": "crag", "rows": [[name
of the prompt, prompt, reply], ...]}: the same references with other questions of the world about what they name, or
prompts without references. Training reads what they share once. Seeds are from 1,000 on; seed 0 is the benchmark's
world, whose questions have the same forms.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crag_reader import COUNTED, DONT_KNOW, STEPS, Reader, stated
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
BY_CALLS = 0.4  # share of runs with the graph that ask it by function calls
YEAR = "2024"  # of the worlds' games
OF_METRIC = {"price": "finance_get_price_history", "dividend": "finance_get_dividends_history",
             "EPS": "finance_get_eps", "P/E ratio": "finance_get_pe_ratio",
             "marketCap": "finance_get_market_capitalization"}  # fmt: skip
BORN = ("music_get_artist_birth_date", "artist_name")
OF_ARTIST = {"member": ("music_get_members", "band_name"), "lifespan": ("music_get_lifespan", "artist_name"),
             "artist work": ("music_get_artist_all_works", "artist_name"),
             "grammy award count": ("music_grammy_get_award_count_by_artist", "artist_name")}  # fmt: skip
OF_SONG = {"author": "music_get_song_author", "release date": "music_get_song_release_date"}
CONTEXT = 2048  # tokens of the embedded generator
KEPT = {"baseline": 0.3, "refined": 0.3, "calculator": 0.5}  # share of the groups of a kind; others 1
AGAIN = {"fields": 4, "calls": 4, "static_or_dynamic": 4, "domain": 6}  # how often a group stands in the file
RUNS, CALCULATED = 2, 4  # runs of a question, and further ones with the calculator of one that asks for a number
EMPTY = 0.5  # share of empty expressions that is kept; most questions need none
# prompts without references: how many of a world
SHORT = {"fields": 240, "calls": 160, "static_or_dynamic": 120, "domain": 60, "knowledge": 36}
OTHERS, SILENT, TOGETHER = 5, 1, 12  # other questions about references, of them without an answer; short prompts
NAMES = ("market_identifier", "movie_name", "person", "artist_name", "song_name", "team", "main_entity")


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
        """As the reader's, with names in the letters of the question, and no sum that equals only when rounded."""
        (name, record, _), reply = self.asked(prompt), super().reply(prompt)
        if name == "calculator":
            rounded = "." in reply and "/" not in reply and not any("." in answer for answer in record.answers)
            return "" if rounded else reply
        if name == "domain":
            return str(record.labels["domain"])
        if name not in ("fields", "calls"):
            return reply
        found = self.fields.of(str(record.labels["domain"]), record.query)
        fields = {key: text.lower() if key in NAMES else text for key, text in found.items()}
        return json.dumps(calls(fields) if name == "calls" else fields)

    def count_tokens(self, text: str) -> int:
        """By the tokenizer."""
        return len(self.tokenizer.encode(text))

    def room(self, max_tokens: int) -> int:  # type: ignore[override]
        """Of a prompt."""
        return CONTEXT - max_tokens


def calls(fields: Mapping[str, str]) -> list[dict[str, Any]]:
    """The function calls that look up what the fields name, as a model writes them."""

    def each(key: str, function: str, parameter: str, **more: str) -> list[dict[str, Any]]:
        names = filter(None, fields.get(key, "").split(", "))
        return [{"function_name": function, "args": {parameter: name, **more}} for name in names]

    ball = "soccer" if fields.get("sport_type") == "soccer" else "nba"
    day = {"date": fields["datetime"] or YEAR}
    return [
        *each("market_identifier", OF_METRIC.get(fields.get("metric", ""), "finance_get_info"), "ticker_name"),
        *each("movie_name", "movie_get_movie_info", "movie_name"),
        *each("person", "movie_get_person_info", "person_name"),
        *each("artist_name", *OF_ARTIST.get(fields.get("artist_aspect", ""), BORN)),
        *each("song_name", OF_SONG[fields.get("song_aspect", "author")], "song_name"),
        *each("team", f"sports_{ball}_get_games_on_date", "team_name", **day),
        *each("main_entity", "open_search_entity_by_name", "query"),
    ]


def ways(rng: random.Random, least: int = -1) -> tuple[Any, dict[str, Any]]:
    """A method, with the arguments of a step of the ladder from ``least`` on; short prompts are learned faster."""
    place = rng.randrange(least, len(STEPS))
    if place < 0:
        return crag_rag_baseline, {}
    drawn = {"dynamic": rng.choice(("decline", "answer")), "k": rng.choice((2, 3, 5, 10)),
             "table_length": rng.choice((600, 1500, 4000))}  # fmt: skip
    switches = {name: i <= place for i, name in enumerate(STEPS)}
    if place == len(STEPS) - 1 and rng.random() < BY_CALLS:  # the list of all functions would not fit the context
        drawn |= {"graph": "calls", "routing": True}
    return crag_hybrid, {**switches, **drawn, "samples": 1, "reasoning_tokens": 128}


def rows_of(seed: int) -> Iterator[dict[str, Any]]:
    """The rows of one world: each question by two steps of the ladder."""
    rng = random.Random(f"crag rows {seed}")
    records = [parse(line, f"question {n}") for n, line in enumerate(lines(seed))]
    corpus, teacher = build(seed), Teacher(records, make_world(seed))
    counted = [record for record in records if record.labels["question_type"] in COUNTED]
    calculator = STEPS.index("calculator")
    for asked, least in [(records, -1)] * RUNS + [(counted, calculator)] * CALCULATED:
        by_way: dict[str, tuple[Any, dict[str, Any], list[Query]]] = {}
        for record in asked:
            method, arguments = ways(rng, least)
            query = Query(record.id, record.query, record.time, f"{corpus}{SEPARATOR}{record.id}")
            by_way.setdefault(repr(arguments), (method, arguments, []))[2].append(query)
        for method, arguments, queries in by_way.values():
            Engine(Corpora(), teacher, Journal(None, "teacher")).run(bind(method, arguments), queries, name="rows")
    short: dict[str, set[str]] = {name: set() for name in SHORT}
    for prompt, (name, reply) in teacher.rows.items():
        if name in SHORT:
            _, record, _ = teacher.asked(prompt)
            same = [r for r in records if name != "calls" or r.labels["domain"] == record.labels["domain"]]
            short[name] |= {asking(prompt, record, other) for other in same}
        elif by_calculation(prompt, teacher):  # alone, since others would mostly be answered otherwise
            yield {"method": "crag", "rows": [(name, prompt, reply)]}
        elif rng.random() < KEPT.get(name, 1.0):
            rows = [(name, prompt, reply), *others(prompt, name, teacher, rng)]
            rows = [row for row in rows if row[2] or rng.random() < EMPTY]
            yield from [{"method": "crag", "rows": rows}] if rows else []
    for name, prompts in short.items():
        drawn = rng.sample(sorted(prompts), min(len(prompts), SHORT[name]))
        for at in range(0, len(drawn), TOGETHER):
            rows = [(name, shown, teacher.reply(shown)) for shown in drawn[at : at + TOGETHER]]
            yield from [{"method": "crag", "rows": rows}] * AGAIN.get(name, 1)


def by_calculation(prompt: str, teacher: Teacher) -> bool:
    """Whether the references state the answer by a calculation alone."""
    _, record, shown = teacher.asked(prompt)
    without = re.sub(r"^\W*\d*\W*Calculation: .*$", "", shown, flags=re.MULTILINE)
    return stated(record, shown) != stated(record, without)


def asking(prompt: str, record: Record, other: Record) -> str:
    """The prompt with another record's question."""
    before, question, after = prompt.rpartition(f"Question: {record.query}")
    return f"{before}{question and f'Question: {other.query}'}{after}"


def others(prompt: str, name: str, teacher: Teacher, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Rows with the same references and other questions about what these name; few of them are without an answer."""
    _, record, shown = teacher.asked(prompt)
    domain, text = str(record.labels["domain"]), shown.lower()
    written = silent = 0
    for other in rng.sample(list(teacher.records.values()), len(teacher.records)):
        fields = teacher.fields.of(domain, other.query)
        names = [one for key in NAMES if fields.get(key) for one in fields[key].lower().split(", ")]
        if other is record or other.labels["domain"] != domain or not names or not all(one in text for one in names):
            continue
        asked = asking(prompt, record, other)
        reply = teacher.reply(asked)
        nothing = DONT_KNOW in reply or not reply
        if nothing and silent == SILENT:
            continue
        silent, written = silent + nothing, written + 1
        yield name, asked, reply
        if written == OTHERS:
            return


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
