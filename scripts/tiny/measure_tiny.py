"""Reading accuracy of an embedded generator: the table of its card.

    python scripts/tiny/measure_tiny.py harness/generators/rulerag_tiny --prompts 200

Exact match in percent on generated prompts that are not in the training data, compared with simple baselines.
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

HELD_OUT = 10**9 + 7  # not a seed of training: those are step numbers plus a multiple of 2**24
TEMPLATE = load_template(Path(__file__).resolve().parents[2] / "methods" / "prompts" / "ruleqa.toml")
# title -> number of documents, with rules, difficulty, as many objects as documents
SETS = {
    "4 documents with 4 objects, no rules": (4, False, 0.3, True),
    "4 documents with 4 objects, rules": (4, True, 0.3, True),
    "6 documents with 6 objects, no rules": (6, False, 0.3, True),
    "10 documents, hardest, no rules": (10, False, 1.0, False),
    "10 documents, hardest, rules": (10, True, 1.0, False),
}


def draw(n: int, docs: int, guided: bool, hard: float, different: bool) -> list[Exercise]:
    """``n`` exercises; the last question of each is used."""
    sampler, exercises = Sampler(HELD_OUT), list[Exercise]()
    while len(exercises) < n:
        exercise = sampler.exercise(docs=docs, guided=guided, hard=hard)
        if not different or len({doc.object for doc in exercise.docs}) == docs:
            exercises.append(exercise)
    return exercises


@torch.no_grad()
def answers(tokenizer: Any, model: Any, prompts: list[str]) -> list[str]:
    """Greedy answers, truncated to the first line."""
    texts = []
    for start in range(0, len(prompts), 10):
        inputs = tokenizer(prompts[start : start + 10], return_tensors="pt", padding=True, return_token_type_ids=False)
        outputs = model.generate(**inputs, max_new_tokens=32, do_sample=False)
        texts += tokenizer.batch_decode(outputs[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
    return [text.split("\n")[0].strip() for text in texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prompts", type=int, default=200)
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    model = AutoModelForCausalLM.from_pretrained(args.folder).float().eval()
    print("| prompts | this model | first document | majority object | best fixed position |\n|---|---|---|---|---|")
    for title, parameters in SETS.items():
        exercises = draw(args.prompts, *parameters)
        gold = [exercise.asked[-1].answer for exercise in exercises]
        prompts = [exercise.shared(TEMPLATE) + exercise.own(TEMPLATE, exercise.asked[-1]) for exercise in exercises]
        objects = [[doc.object for doc in exercise.docs] for exercise in exercises]
        places = [[names[at] if at < len(names) else "" for names in objects] for at in range(parameters[0])]
        guesses = {
            "this model": answers(tokenizer, model, prompts),
            "first document": places[0],
            "majority object": [Counter(names).most_common(1)[0][0] for names in objects],
            "best fixed position": max(places, key=lambda names: right(names, gold)),
        }
        shares = (f"{100 * right(names, gold) / len(gold):.1f}" for names in guesses.values())
        print(f"| {title} | {' | '.join(shares)} |", flush=True)


def right(names: list[str], gold: list[str]) -> int:
    """Number of exact matches."""
    return sum(a == b for a, b in zip(names, gold, strict=True))


if __name__ == "__main__":
    main()
