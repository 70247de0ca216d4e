"""What each RuleQA task is."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from lm_eval_rag.harness.data.sources import read_manifest
from lm_eval_rag.harness.data.task_about import TaskAbout, TaskOption
from lm_eval_rag.tasks.ruleqa.card import ALL, BY_GRAPH, RENAMED
from lm_eval_rag.tasks.ruleqa.graphs import FILES
from lm_eval_rag.tasks.ruleqa.natural import CHANGE, NATURAL, NATURAL_TASKS
from lm_eval_rag.tasks.ruleqa.specs import FRESH, SPECS, Spec
from lm_eval_rag.tasks.ruleqa.task import HARD

PAPER = "RuleRAG (arXiv:2410.22353)"
WITH_HARD = ("ruleqa_i", "ruleqa_f", "ruleqa_n")
OPTIONS = {
    "dataset": TaskOption("a text", "", "A published set in place of the sources, ORG/NAME@REVISION on the Hub."),
}


def about() -> dict[str, TaskAbout]:
    """The tasks of this folder by name, groups included."""
    single = {name: one for spec in SPECS.values() for name, one in _variants(spec)}
    group = TaskAbout(f"The five sets: {', '.join(SPECS)}.", PAPER, OPTIONS, ALL)
    english = TaskAbout(
        f"The five sets with questions in English: {', '.join(NATURAL_TASKS)}.",
        PAPER,
        OPTIONS,
        (*ALL, CHANGE.format("the set")),
    )
    return {**single, "ruleqa": group, "ruleqa_natural": english}


def _variants(spec: Spec) -> Iterator[tuple[str, TaskAbout]]:
    manifest = read_manifest(files(__package__) / "sources.toml")
    own = (*ALL, *BY_GRAPH[spec.graph])
    sources = tuple(manifest[path] for path in FILES[spec.graph])
    questions = f"questions over {spec.title}, with rules that lead to the answers"
    yield spec.task, TaskAbout(f"{spec.published.queries} {questions}.", PAPER, OPTIONS, own, sources)
    renamed = (*own, RENAMED.format(spec.task))
    fresh = f"The {questions}, all entities renamed, so that no model knows the answers."
    yield spec.task + FRESH, TaskAbout(fresh, PAPER, OPTIONS, renamed, sources)
    natural = f"The {spec.published.queries} {questions}, worded in English."
    yield spec.task + NATURAL, TaskAbout(natural, PAPER, OPTIONS, (*own, CHANGE.format(spec.task)), sources)
    if spec.task in WITH_HARD:
        hard = f"All {questions.replace('questions', 'test questions')} that no document answers without a rule."
        yield spec.task + HARD, TaskAbout(hard, PAPER, OPTIONS, own, sources)
