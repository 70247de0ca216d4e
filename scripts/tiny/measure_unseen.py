"""Accuracy of a fine-tuned generator on names and rules that are not in its training prompts: a table for its card.

    lm_eval --tasks ruleqa --model rulerag_ft --log_samples --output_path runs
    python scripts/tiny/measure_unseen.py harness/generators/rulerag_tiny_rgft runs

The training prompts are rebuilt from the checkpoint's ``rulerag.json``. A name or a rule is seen if any training prompt
of its set contains it; a name also if it is a training answer. ``em if retrieved`` is over the questions with
recall@10 = 1, because an unseen answer is often not in any document.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lm_eval.models  # noqa: F401  (registers our methods)
from lm_eval.api.registry import get_model

from lm_eval_rag.harness.checkpoints.note import Note, read_note
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.arguments import Setup, read_arguments
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.report.stats import interval
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.harness.train.generator_settings import MAX_TOKENS
from lm_eval_rag.harness.train.training_prompts import build_rows, read_questions, split, taught

sys.path.insert(0, str(Path(__file__).parents[1]))
from markdown_table import cell, table

N_RULES = 3  # rules per question, as in the methods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("runs", type=Path, nargs="+", help="output folders of lm_eval with --log_samples")
    options = parser.parse_args()
    note = read_note(options.checkpoint)
    assert note is not None, f"{options.checkpoint} has no rulerag.json"
    corpora = dict(zip(note.tasks, note.corpora, strict=True))
    setup = _setup(note)
    names = ["all", "answer seen", "answer unseen", "subject and answer unseen", "rules seen", "rules unseen"]
    lines = []
    for run in read_runs(options.runs):
        if run.task not in corpora:
            continue
        docs = {id_: sample["doc"] for id_, sample in run.questions.items()}
        classes = _classes(docs, _shown(note, setup, run.task, corpora[run.task]))
        em, recall = run.scores["em"], run.scores["recall@10"]
        retrieved = {id_: score for id_, score in em.items() if recall.get(id_) == 1}
        for metric, scores in (("em", em), ("recall@10", recall), ("em if retrieved", retrieved)):
            values = [[scores[id_] for id_ in docs if name in classes[id_] and id_ in scores] for name in names]
            shown = (f"{cell(interval(value))} of {len(value):,}" if value else "" for value in values)
            lines.append([run.label, run.task, metric, *shown])
    print(table(["run", "task", "score", *names], lines))


def _setup(note: Note) -> Setup:
    """The method that built the prompts, with its retriever."""
    settings = note.settings
    retriever, options = settings["retriever"]
    arguments = {"retriever": retriever, "generator": settings["base"], **settings["parameters"]}
    arguments |= {f"retriever_{key}": value for key, value in options.items()}
    method: Callable[..., Any] = get_model(settings["method"]).method
    return read_arguments(settings["method"], method, arguments)


def _shown(note: Note, setup: Setup, task: str, corpus: str) -> str:
    """The text of all training prompts and answers of a set."""
    settings = note.settings
    questions = read_questions(task, corpus)
    training, _ = split(questions, rows=settings["rows"], dev=settings["dev"], seed=settings["seed"])
    counts = LMGenerator(ModelSpec(settings["base"], {}))
    rows = build_rows(setup.bound(), setup.corpora, training, counts, max_tokens=MAX_TOKENS)
    return "\n".join(f"{row.prompt} {row.answer}" for row in taught(rows, settings.get("unstated", "keep")))


def _classes(docs: Mapping[str, Mapping[str, Any]], shown: str) -> dict[str, set[str]]:
    """Question id -> the columns that it belongs to."""
    classes: dict[str, set[str]] = {}
    banks: dict[str, RuleBank] = {}
    for id_, doc in docs.items():
        if doc["corpus"] not in banks:
            banks[doc["corpus"]] = RuleBank(open_corpus(doc["corpus"]))
        bank = banks[doc["corpus"]]
        answer = any(name in shown for name in doc["answers"])
        rules = [rule.text in shown for rule in bank.match(doc["query"], N_RULES)]
        classes[id_] = {"all", f"answer {'seen' if answer else 'unseen'}"}
        if not answer and doc["subject"] not in shown:
            classes[id_].add("subject and answer unseen")
        if rules:
            classes[id_].add(f"rules {'seen' if any(rules) else 'unseen'}")
    return classes


if __name__ == "__main__":
    main()
