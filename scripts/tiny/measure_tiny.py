"""How well an embedded generator reads: the table of its card.

    python scripts/tiny/measure_tiny.py harness/generators/rulerag_tiny --prompts 200

Exact match in percent on made-up prompts that training never saw, beside answers that need no reading.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from tiny_prompts import Exercise, Sampler
from transformers import AutoModelForCausalLM, AutoTokenizer

from lm_eval_rag.harness.core.prompts import load_template

HELD_OUT = 10**9 + 7  # seeds of training are step numbers plus a multiple of 2**24, this is none of them
TEMPLATE = load_template(Path(__file__).resolve().parents[2] / "methods" / "prompts" / "ruleqa.toml")
# title -> documents, with rules, how hard, with as many objects as documents
SETS = {
    "4 documents with 4 objects, no rules": (4, False, 0.3, True),
    "4 documents with 4 objects, rules": (4, True, 0.3, True),
    "6 documents with 6 objects, no rules": (6, False, 0.3, True),
    "10 documents, hardest, no rules": (10, False, 1.0, False),
    "10 documents, hardest, rules": (10, True, 1.0, False),
}


def draw(n: int, docs: int, guided: bool, hard: float, different: bool) -> list[Exercise]:
    """``n`` exercises, of which the last question is asked."""
    sampler, found = Sampler(HELD_OUT), list[Exercise]()
    while len(found) < n:
        exercise = sampler.exercise(docs=docs, guided=guided, hard=hard)
        if not different or len({doc.object for doc in exercise.docs}) == docs:
            found.append(exercise)
    return found


@torch.no_grad()
def answers(tokenizer: Any, model: Any, prompts: list[str]) -> list[str]:
    """Greedy answers, a line each."""
    found = []
    for start in range(0, len(prompts), 10):
        given = tokenizer(prompts[start : start + 10], return_tensors="pt", padding=True, return_token_type_ids=False)
        made = model.generate(**given, max_new_tokens=32, do_sample=False)
        found += tokenizer.batch_decode(made[:, given.input_ids.shape[1] :], skip_special_tokens=True)
    return [text.split("\n")[0].strip() for text in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prompts", type=int, default=200)
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    model = AutoModelForCausalLM.from_pretrained(args.folder).float().eval()
    print("| prompts | this model | first document | majority object | best fixed place |\n|---|---|---|---|---|")
    for title, what in SETS.items():
        drawn = draw(args.prompts, *what)
        gold = [exercise.asked[-1].answer for exercise in drawn]
        prompts = [exercise.shared(TEMPLATE) + exercise.own(TEMPLATE, exercise.asked[-1]) for exercise in drawn]
        objects = [[doc.object for doc in exercise.docs] for exercise in drawn]
        places = [[names[at] if at < len(names) else "" for names in objects] for at in range(what[0])]
        guesses = {
            "this model": answers(tokenizer, model, prompts),
            "first document": places[0],
            "majority object": [Counter(names).most_common(1)[0][0] for names in objects],
            "best fixed place": max(places, key=lambda names: right(names, gold)),
        }
        shares = (f"{100 * right(names, gold) / len(gold):.1f}" for names in guesses.values())
        print(f"| made-up, {title} | {' | '.join(shares)} |", flush=True)


def right(names: list[str], gold: list[str]) -> int:
    """How many are exactly right."""
    return sum(a == b for a, b in zip(names, gold, strict=True))


if __name__ == "__main__":
    main()
