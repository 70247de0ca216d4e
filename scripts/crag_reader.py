"""What crag_demo's ladder can gain: its steps with a reader that makes no mistakes in place of a model.

    python scripts/crag_reader.py [--seed 0]

The reader knows the gold answers, and gives one if the references of the prompt state it; otherwise it says "I don't
know". It writes the form that each module asks for: the label of the question, the fields of the knowledge graph, an
expression over numbers of the references. It knows nothing by heart. So a step's score is the most that a model can
reach with its references, but for what a model infers. It is a little too high: a gold answer may stand in a reference
for another reason, and two numbers may have the right difference by chance. Each line: crag_score in per cent with a
bootstrap interval over questions, the difference to the line above, and correct, missing and wrong answers.
"""

from __future__ import annotations

import argparse
import json
import re
from calendar import month_name
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import bind
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.data.page_store import SEPARATOR
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.plugin.engine import Engine
from lm_eval_rag.harness.report.stats import interval, paired
from lm_eval_rag.harness.scoring.judge import RulesJudge
from lm_eval_rag.harness.scoring.judge.panel import Panel, Response
from lm_eval_rag.harness.scoring.truncate import words_cut
from lm_eval_rag.methods.crag.crag_prompts import _parts
from lm_eval_rag.methods.crag_hybrid import crag_hybrid
from lm_eval_rag.methods.crag_rag_baseline import crag_rag_baseline
from lm_eval_rag.tasks.crag.schema import Record, parse
from lm_eval_rag.tasks.crag_demo.build import build, lines
from lm_eval_rag.tasks.crag_demo.finance import short
from lm_eval_rag.tasks.crag_demo.world import CLUBS, TEAMS, World, make_world

DONT_KNOW, INVALID = "I don't know", "invalid question"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SMALL = re.compile(r"\d{1,3}(\s\w+)?|\w+")  # a count: it stands everywhere, so only a calculation states it
COUNTED = ("aggregation", "post-processing")
STEPS = ("chunk_extraction", "prompt_refinement", "attribute_predictor", "table_extractor", "calculator", "reasoning",
         "false_premise", "knowledge_extractor", "knowledge_graph")  # fmt: skip
MONTHS = [name.lower() for name in month_name[1:]]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of the knowledge graph for a question, by the names of the world that it holds."""

    world: World

    def of(self, domain: str, text: str) -> dict[str, str]:
        """The JSON object that a perfect reader of the question would write."""
        write: dict[str, Callable[[str], dict[str, str]]] = {
            "finance": self._finance, "movie": self._movie, "music": self._music, "sports": self._sports,
        }  # fmt: skip
        fields = write.get(domain, self._open)(text)
        return {"domain": "encyclopedia" if domain == "open" else domain, **fields, "datetime": _date(text)}

    def _finance(self, text: str) -> dict[str, str]:
        words = re.findall(r"[a-z]+", text)
        named = [c.symbol for c in self.world.companies if c.symbol.lower() in words or short(c.name).lower() in text]
        metrics = {"dividend": "dividend", "price": "price", "close": "price", "market cap": "marketCap",
                   "earnings per share": "EPS", "relation to its earnings": "P/E ratio"}  # fmt: skip
        metric = next((name for words, name in metrics.items() if words in text), "other")
        return {"market_identifier": ", ".join(named), "metric": metric}

    def _movie(self, text: str) -> dict[str, str]:
        titles = _longest([film.title for film in self.world.films], text)
        aspects = {" act": "acted_movies", "direct": "directed_movies", "born": "birthday", "oscar": "oscar_awards"}
        aspect = next((name for word, name in aspects.items() if word in text), "birthday")
        people = _longest(list(self.world.people), text)
        return {"movie_name": ", ".join(titles), "person": ", ".join(people), "person_aspect": aspect}

    def _music(self, text: str) -> dict[str, str]:
        aspects = {"member": "member", "grammy": "grammy award count", "song": "artist work", "exist": "lifespan"}
        aspect = next((name for word, name in aspects.items() if word in text), "birth date")
        return {"artist_name": ", ".join(_longest([artist.name for artist in self.world.artists], text)),
                "song_name": ", ".join(_longest([song.title for song in self.world.songs], text)),
                "artist_aspect": aspect, "song_aspect": "author" if "who" in text else "release date"}  # fmt: skip

    def _sports(self, text: str) -> dict[str, str]:
        clubs = _longest(CLUBS, text)
        return {"team": ", ".join(clubs or _longest(TEAMS, text)), "sport_type": "soccer" if clubs else "basketball"}

    def _open(self, text: str) -> dict[str, str]:
        return {"main_entity": ", ".join(_longest(list(self.world.entities), text))}


def _longest(names: Sequence[str], text: str) -> list[str]:
    """The names in a text that are no part of a longer one there."""
    named = [name for name in names if name.lower() in text]
    return [name for name in named if not any(name != other and name in other for other in named)]


def _date(text: str) -> str:
    match = re.search(rf"({'|'.join(MONTHS)}) (\d+), (\d{{4}})", text)
    return f"{match[3]}-{MONTHS.index(match[1]) + 1:02}-{int(match[2]):02}" if match else ""


class Reader:
    """The generator.

    Args:
        records: The questions.
        world: What they are about.
    """

    fingerprint = "reader"
    batch = 512

    def __init__(self, records: Sequence[Record], world: World) -> None:
        self.records, self.fields = {record.query: record for record in records}, Fields(world)
        texts = {name: part for name, part in _parts(None).items() if isinstance(part, dict) and "instruction" in part}
        starts = [(part[key].strip(), name) for name, part in texts.items() for key in ("instruction", "closed")
                  if key in part]  # fmt: skip
        self.starts = sorted(starts, key=lambda start: -len(start[0]))

    def generate(self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[str]:
        """The replies."""
        return [self.reply(prompt) for prompt in prompts]

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """None of the ladder's steps asks for it."""
        raise NotImplementedError

    def count_tokens(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        """No limit."""

    def reply(self, prompt: str) -> str:
        """What the module asks for whose prompt this is."""
        name, record, shown = self.asked(prompt)
        if name == "static_or_dynamic":
            return "static" if record.labels["static_or_dynamic"] == "static" else "dynamic"
        if name == "calculator":
            return expression(record, shown)
        if name == "fields":
            return json.dumps(self.fields.of(str(record.labels["domain"]), record.query))
        invalid = record.labels["question_type"] == "false_premise"
        premise = INVALID if "false_premise" in name else ""  # only some prompts ask for it
        answer = self.answered((premise if invalid else stated(record, shown)) or DONT_KNOW, shown)
        if not name.startswith(("reasoning", "knowledge")):
            return answer
        false = "yes" if answer == INVALID else "no"
        return f"## Reasoning:\n{self.because(answer, record, shown)}\n## Answer:\n{answer}\n## False Premise:\n{false}"

    def asked(self, prompt: str) -> tuple[str, Record, str]:
        """The name of the prompt, its question, and the references that it shows."""
        name = next(name for start, name in self.starts if prompt.startswith(start))
        record = self.records[re.findall(r"^Question: (.*)$", prompt, re.MULTILINE)[-1]]
        shown = prompt.rpartition("References:")[2].rpartition("Question:")[0] if "References:\n" in prompt else ""
        return name, record, shown

    def answered(self, answer: str, shown: str) -> str:
        """An answer as it is written."""
        return answer

    def because(self, answer: str, record: Record, shown: str) -> str:
        """The reasoning before an answer."""
        return "The references say so."


def stated(record: Record, shown: str) -> str:
    """A gold answer that the references state, or ""."""
    if record.labels["question_type"] == "comparison":  # the question names both: what is known of them must be there
        options = re.split(r",? or ", record.query.rpartition(", ")[2].rstrip("?"))
        names = [option.removeprefix("those of ").removeprefix("the ") for option in options]
        return record.answers[0] if all(_within(name, shown) for name in names) else ""
    values = re.findall(r"^\W*\d*\W*Calculation: .* = (\S+)$", shown, re.MULTILINE)
    for answer in record.answers:
        if any(_same(value, answer) for value in values):
            return answer
        counted = SMALL.fullmatch(answer) and record.labels["question_type"] in COUNTED
        parts = re.split(r", | and ", answer) if record.labels["question_type"] == "set" else [answer]
        if not counted and all(_within(part, shown) for part in parts):
            return answer
    return ""


def _within(text: str, shown: str) -> bool:
    return re.search(rf"(?<![\w.,]){re.escape(text)}(?!\w)", shown, re.IGNORECASE) is not None


def _same(value: str, answer: str) -> bool:
    number = NUMBER.search(answer)
    digits = len(number[0].partition(".")[2]) if number else 0
    return number is not None and f"{float(value):.{digits}f}" == number[0].replace(",", "")


def expression(record: Record, shown: str) -> str:
    """An expression over at most three numbers of the references whose value is the gold answer; "" without one."""
    wanted = [answer for answer in record.answers if NUMBER.search(answer)]
    kind = next((kind for words, kind in KINDS if re.search(words, record.query)), None)
    if record.labels["question_type"] not in COUNTED or not wanted or kind is None:
        return ""
    texts = dict.fromkeys(text.replace(",", "").rstrip(".") for text in NUMBER.findall(shown))
    numbers = [text for text in texts if float(text) >= 1000 or "." in text][:60]
    return next((e for e in kind(numbers) for answer in wanted if _same(str(value_of(e)), answer)), "")


def _changes(numbers: Sequence[str]) -> Iterator[str]:
    return (f"100 * ({a} / {b} - 1)" for a, b in permutations(numbers, 2) if float(b))


def _hundredfolds(numbers: Sequence[str]) -> Iterator[str]:
    return (f"100 * {a}" for a in numbers)


def _sums(numbers: Sequence[str]) -> Iterator[str]:
    return (" + ".join(terms) for size in (2, 3) for terms in combinations(numbers, size))


def _differences(numbers: Sequence[str]) -> Iterator[str]:
    return (f"{a} - {b}" for a, b in permutations(numbers, 2))


KINDS = (  # words of a question, and what it asks for; a count ("how many songs") is none of them
    ("by what percentage", _changes), ("what did 100", _hundredfolds), ("together|in total", _sums),
    ("years|how old|dollars|square kilometres", _differences),
)  # fmt: skip


def value_of(text: str) -> float:
    """The value of such an expression."""
    values = [float(number) for number in NUMBER.findall(text)]
    if "/" in text:
        return 100 * (values[1] / values[2] - 1)
    if "-" in text:
        return values[0] - values[1]
    return 100 * values[1] if "*" in text else sum(values)


def ladder() -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """(label, method, arguments) of every step of the paper's table 2, and of the last one without abstaining."""
    yield "Official RAG Baseline", crag_rag_baseline, {}
    for place, step in enumerate(STEPS):
        yield f"+ {step}", crag_hybrid, {**{name: i <= place for i, name in enumerate(STEPS)}, "samples": 1}
    for graph in (False, True):
        arguments = {"dynamic": "answer", "knowledge_graph": graph, "samples": 1}
        yield f"dynamic=answer, {'with' if graph else 'without'} the graph", crag_hybrid, arguments


def measured(seed: int = 0, limit: int | None = None) -> Iterator[tuple[str, list[int]]]:
    """Label and points (1, 0 or -1 for each question) of every step."""
    records = [parse(line, f"question {n}") for n, line in enumerate(lines(seed))][:limit]
    corpus, panel = build(seed), Panel((RulesJudge(),), words_cut(), True)
    queries = [Query(r.id, r.query, r.time, f"{corpus}{SEPARATOR}{r.id}") for r in records]
    for label, method, arguments in ladder():
        engine = Engine(Corpora(), Reader(records, make_world(seed)), Journal(None, "reader"))
        answers = engine.run(bind(method, arguments), queries, name=label)
        points = []
        for record, (answer, _) in zip(records, answers, strict=True):
            response = Response(record.query, tuple(record.answers), answer.text, answer.abstained)
            verdict = panel.verdicts([response])[response]
            points.append(0 if verdict.missing else 1 if verdict.correct == 1 else -1)
        yield label, points


def main() -> None:
    """Print one line for each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the world (default: 0)")
    parser.add_argument("--limit", type=int, help="only the first N questions")
    options = parser.parse_args()
    above: list[int] | None = None
    print("| step | crag_score | correct | missing | wrong | difference to the row above |\n|---|---|---|---|---|---|")
    for label, points in measured(options.seed, limit=options.limit):
        score, change = interval(points), "" if above is None else _interval(paired(points, above).interval)
        counts = " | ".join(str(points.count(point)) for point in (1, 0, -1))
        print(f"| {label} | {_interval(score)} | {counts} | {change} |", flush=True)
        above = points


def _interval(value: Any) -> str:
    ends = "" if value.low is None else f" [{100 * value.low:.1f}, {100 * value.high:.1f}]"
    return f"{100 * value.mean:.1f}{ends}"


if __name__ == "__main__":
    main()
