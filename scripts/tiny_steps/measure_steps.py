"""How well an embedded generator follows the methods of several steps: the tables of its card.

    python scripts/tiny_steps/measure_steps.py steps harness/generators/reasoning_tiny
    python scripts/tiny_steps/measure_steps.py methods tiny_steps --questions 200 --methods ircot search_agent
    python scripts/tiny_steps/measure_steps.py methods teacher --questions 400

``steps``: of each kind of step the share of greedy replies that equal the teacher's, over prompts that the methods sent
to the teacher in two worlds that training has not seen. ``methods``: exact match and token F1 of methods on test
questions of reasoning_demo or ruleqa_demo, with an embedded generator by name or folder, or with the teacher, an honest
reader.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tiny"))

import polars as pl
from make_rows import MIX, record
from packing import joined
from teacher import Teacher

from lm_eval_rag._register import method_of
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.types import SHORT, Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.generators.base import Decoding, Generator
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import EMBEDDED, ModelSpec
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.scoring import score
from lm_eval_rag.harness.scoring.case import is_missing
from lm_eval_rag.methods.reasoning.rationales import first_sentence
from lm_eval_rag.methods.reasoning.steps import STOP
from lm_eval_rag.tasks.reasoning_demo.build import questions_of
from lm_eval_rag.tasks.reasoning_demo.questions import draw
from lm_eval_rag.tasks.reasoning_demo.world import make_parts
from lm_eval_rag.tasks.ruleqa_demo.build import build as ruleqa_demo

UNSEEN = (900_001, 900_002)  # seeds of worlds; training takes 1,000 and the next few hundred
INVENTED = ("verify_and_edit: rationale", "chain_of_knowledge: rationale", "tree_of_thoughts: thought")
ONE_SENTENCE = ("ircot: thought", "self_rag: segment", "verify_and_edit: edit", "chain_of_knowledge: correct")
PER_WORLD = 20  # questions of each method
STOPS = (*STOP, "\nResults:")


def prompts_of(methods: Sequence[str], most: int) -> dict[str, list[tuple[str, str]]]:
    """(prompt, reply of the teacher) by step, at most so many of each, over all passages of unseen worlds."""
    rows = defaultdict[str, set[tuple[str, str]]](set)
    for seed in UNSEEN:
        rng, (part, _) = random.Random(f"unseen {seed}"), make_parts(seed)
        questions = draw(rng, part, 0.25)[:PER_WORLD]
        for method in methods:
            teacher = record(method, part, list(part.facts), questions, "bm25", **MIX[method][1])
            for step, prompt, reply in teacher.rows:
                step = "reader" if step == "iter_retgen.paper" and method == "ircot" else step.split(".")[1]
                rows[f"{method}: {step}"].add((prompt, reply))
    return {
        step: random.Random(step).sample(sorted(pairs), min(len(pairs), most)) for step, pairs in sorted(rows.items())
    }


def same_reply(prompt: str, reply: str, expected: str, first: bool = False) -> bool:
    """Whether a reply says what the teacher's does; of a step that writes one sentence the first one counts."""
    text = first_sentence(reply) if first else reply
    return " ".join(text.split()) == " ".join(joined(prompt, expected).split())


def share_of_equal(generator: Generator, step: str, pairs: Sequence[tuple[str, str]]) -> float:
    """The share of (prompt, expected reply) pairs to which a generator replies as expected."""
    prompts = [prompt for prompt, _ in pairs]
    replies = generator.generate(prompts, Decoding(120, STOPS), [0] * len(prompts))
    equal = (same_reply(p, str(r), e, step in ONE_SENTENCE) for (p, e), r in zip(pairs, replies, strict=True))
    return sum(equal) / len(pairs)


def measure_steps(generator: Generator, methods: Sequence[str], most: int) -> None:
    """Print the table of steps."""
    print("| step | prompts | equal replies |\n|---|---:|---:|")
    for step, pairs in prompts_of(methods, most).items():
        if step not in INVENTED:
            print(f"| {step} | {len(pairs)} | {100 * share_of_equal(generator, step, pairs):.0f} |", flush=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its gold answer and its type."""

    query: Query
    answer: str
    type: str


def reasoning(count: int) -> tuple[list[Asked], Corpus]:
    """Test questions of reasoning_demo."""
    parts, questions = make_parts(0), questions_of(0)["test"][:count]
    passages = [Passage(page.title, page.text) for part in parts for page in part.pages]
    asked = [Asked(Query(f"q{n}", q.text, answer_form=SHORT), q.answer, q.type) for n, q in enumerate(questions)]
    return asked, Corpus.of(passages)


def ruleqa(count: int) -> tuple[list[Asked], Corpus]:
    """Test questions of ruleqa_demo."""
    folder = ruleqa_demo()
    rows = pl.read_parquet(cache_dir() / folder / "queries.parquet").head(count).to_dicts()
    asked = [Asked(Query(row["id"], row["text"], row["time"]), row["answers"][0], row["slice"]) for row in rows]
    return asked, open_corpus(folder)


TASKS = {"reasoning_demo": reasoning, "ruleqa_demo": ruleqa}


def measure_methods(name: str, methods: Sequence[str], task: str, count: int) -> None:
    """Print the table of methods."""
    questions, corpus = TASKS[task](count)
    kinds = sorted({question.type for question in questions})
    print(f"| method | em | f1 | {' | '.join(kinds)} | abstained | seconds |\n|---|{'---:|' * (len(kinds) + 4)}")
    for method in methods:
        began = process_time()
        answers = run(
            method_of(method), [q.query for q in questions], corpus=corpus, generator=generator_of(name, count)
        )
        scores, abstained = defaultdict[str, list[float]](list), 0
        for question, (answer, _) in zip(questions, answers, strict=True):
            row = score({"answers": [question.answer], "query": question.query.text}, answer.text, None)
            scores["em"].append(row["em"])
            scores["f1"].append(row["token_f1"])
            scores[question.type].append(row["em"])
            abstained += answer.abstained or is_missing(answer.text)
        cells = [f"{100 * sum(scores[k]) / len(scores[k]):.1f}" for k in ("em", "f1", *kinds)]
        share = 100 * abstained / len(questions)
        print(f"| {method} | {' | '.join(cells)} | {share:.1f} | {process_time() - began:.0f} |", flush=True)


def generator_of(name: str, count: int) -> Generator:
    """The teacher, who knows the test questions of reasoning_demo, or an embedded generator."""
    if name == "teacher":
        return Teacher(make_parts(0)[0], questions_of(0)["test"][:count], reads=True)
    return embedded(name)


def embedded(name: str) -> LMGenerator:
    """An embedded generator by its name, or a checkpoint by its folder."""
    if name in EMBEDDED:
        return LMGenerator(ModelSpec(name))
    return LMGenerator(ModelSpec("hf", {"pretrained": name, "dtype": "float32"}, 32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("steps", "methods"))
    parser.add_argument("generator", help="name of an embedded generator, a folder, or teacher")
    parser.add_argument("--methods", nargs="+", default=list(MIX), choices=list(MIX))
    parser.add_argument("--task", choices=list(TASKS), default="reasoning_demo")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--prompts", type=int, default=60, help="prompts of each step, at most")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    if args.what == "steps":
        measure_steps(embedded(args.generator), args.methods, args.prompts)
    else:
        measure_methods(args.generator, args.methods, args.task, args.questions)


if __name__ == "__main__":
    main()
