"""What each RuleQA task is."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from lm_eval_rag.harness.data.sources import read_manifest
from lm_eval_rag.harness.data.task_about import TaskAbout, TaskOption
from lm_eval_rag.tasks.ruleqa.card import ALL, BY_GRAPH, RENAMED
from lm_eval_rag.tasks.ruleqa.natural import CHANGE, NATURAL, NATURAL_TASKS
from lm_eval_rag.tasks.ruleqa.slices import MANY
from lm_eval_rag.tasks.ruleqa.source_files import FILES
from lm_eval_rag.tasks.ruleqa.specs import FRESH, SPECS, Spec

PAPER = "RuleRAG (arXiv:2410.22353)"
WITH_HARD = ("ruleqa_i", "ruleqa_f", "ruleqa_n")
SLICES = (
    "slice, by what links the subject to the answer: direct (a passage states it with the question's relation), "
    "reverse (the relation reversed), rule_required (the body of a rule), other_link (any other passage), nowhere. "
    "rule_confidence of the best rule. subject_documents: few or many passages. change, on temporal sets: stable (the "
    "last object of subject and relation is right) or changed. seen: a training question shares the fact. popularity "
    "of the answer: head, torso, tail. relation."
)
GOLD = (
    "All objects of the held-out facts with the question's subject, relation and time, each with its aliases. Recall "
    "counts a passage whose fact has a gold answer as its object."
)
OPTIONS = {
    "dataset": TaskOption("a text", "", "A published set in place of the sources, ORG/NAME@REVISION on the Hub."),
}


def about() -> dict[str, TaskAbout]:
    """The tasks of this folder by name, groups included."""
    single = {name: one for spec in SPECS.values() for name, one in _variants(spec)}
    shared = {"gold": GOLD, "slices": SLICES}
    group = TaskAbout(f"The five sets: {', '.join(SPECS)}.", PAPER, OPTIONS, ALL, facts=shared)
    english = TaskAbout(
        f"The five sets with questions in English: {', '.join(NATURAL_TASKS)}.",
        PAPER,
        OPTIONS,
        (*ALL, CHANGE.format("the set")),
        facts=shared,
    )
    return {**single, "ruleqa": group, "ruleqa_natural": english}


def _variants(spec: Spec) -> Iterator[tuple[str, TaskAbout]]:
    manifest = read_manifest(files(__package__) / "sources.toml")
    own = (*ALL, *BY_GRAPH[spec.graph])
    sources = tuple(manifest[path] for path in FILES[spec.graph])
    questions = f"questions over {spec.title}, with rules that lead to the answers"
    facts, form = _facts(spec), _form(spec)
    yield spec.task, TaskAbout(f"{spec.published.queries} {questions}.", PAPER, OPTIONS, own, sources, facts, form)
    renamed = (*own, RENAMED.format(spec.task))
    fresh = f"The {questions}, all entities renamed, so that no model knows the answers."
    yield spec.task + FRESH, TaskAbout(fresh, PAPER, OPTIONS, renamed, sources, facts, form)
    natural = f"The {spec.published.queries} {questions}, worded in English."
    worded = {**form, "query": "Of which country is Ada Moss a citizen?"}
    changed = (*own, CHANGE.format(spec.task))
    yield spec.task + NATURAL, TaskAbout(natural, PAPER, OPTIONS, changed, sources, facts, worded)
    if spec.task in WITH_HARD:
        hard = f"All {questions.replace('questions', 'test questions')} that no document answers without a rule."
        without = {**facts, "questions": "All rule_required questions of the test part, in the main set or not."}
        yield spec.task + "_hard", TaskAbout(hard, PAPER, OPTIONS, own, sources, without, form)
    if spec.dense:
        dense = f"All test {questions}, of subjects with more than {MANY} documents."
        only = {**facts, "questions": f"All questions of the test part whose subject has more than {MANY} documents."}
        yield spec.task + "_dense", TaskAbout(dense, PAPER, OPTIONS, own, sources, only, form)


def _facts(spec: Spec) -> dict[str, str]:
    sizes = spec.published
    return {
        "questions": f"{sizes.queries:,}, as many as the paper has.",
        "corpora": f"One passage for each fact of {spec.title} outside the held-out ones, and rules mined from them. "
        f"The paper has {sizes.documents:,} documents and {sizes.rules:,} rules. `lm-eval-rag build {spec.task}` "
        "writes a card with the numbers here.",
        "slices": SLICES,
        "gold": GOLD,
    }


def _form(spec: Spec) -> dict[str, Any]:
    time = "2034-05-12" if spec.temporal else None
    when = f"Time {time} " if time else ""
    return {
        "id": f"{spec.task[-1]}0000",
        "query": f"{when}what does Ada Moss is a citizen of ?",
        "subject": "Ada Moss",
        "relation": "is a citizen of",
        "time": time,
        "answers": ["Vale"],
        "slice": "rule_required",
        "popularity": "tail",
        "corpus": f"{spec.task}/0123456789ab",
    }
