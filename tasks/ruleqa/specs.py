"""The five benchmarks: their graphs, parameters and published sizes.

Published sizes: table 1 of arXiv:2410.22353 (version of 16 October 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.common.errors import unknown

CorpusChoice = Literal["train", "train_valid"]  # the facts of D; train_valid only for temporal graphs


@dataclass(frozen=True, slots=True)
class Sizes:
    """Number of rules, documents, retriever pairs, generator pairs and queries."""

    rules: int
    documents: int
    retriever_train: int
    generator_train: int
    queries: int


@dataclass(frozen=True, slots=True)
class Spec:
    """One benchmark.

    Args:
        task: Name of the task.
        graph: Name of the reader in :mod:`lm_eval_rag.tasks.ruleqa.graphs`.
        title: Name of the knowledge graph, for the card.
        temporal: Whether facts have times.
        bank: Maximum number of cross-relation rules; None for all.
        min_support: Minimum support of a rule in the bank.
        published: Published sizes; Q has the published number of queries if there are enough.
        one_each: Whether Q has at most one question of each subject and relation. YAGO and WIKI repeat a fact every
            year, so that more would be near-copies.
        dense: Whether there is a ``_dense`` variant.
    """

    task: str
    graph: str
    title: str
    temporal: bool
    bank: int | None
    min_support: int
    published: Sizes
    one_each: bool = False
    dense: bool = False


SPECS = {
    spec.task: spec
    for spec in (
        Spec("ruleqa_i", "icews14", "ICEWS14", True, 557, 3, Sizes(557, 77508, 6594, 7440, 1559)),
        Spec("ruleqa_y", "yago", "YAGO", True, None, 2, Sizes(99, 243633, 28153, 22765, 1864), True),
        Spec(
            "ruleqa_w",
            "wiki",
            "WIKI (Wikidata12k)",
            True,
            None,
            2,
            Sizes(78, 584364, 50996, 62375, 2065),
            one_each=True,
        ),
        Spec("ruleqa_f", "fb15k237", "FB15k-237", False, 367, 2, Sizes(367, 49088, 8082, 9645, 1233)),
        Spec("ruleqa_n", "nell995", "NELL-995", False, 234, 2, Sizes(234, 18177, 4351, 4764, 815), dense=True),
    )
}
FRESH = "_fresh"  # suffix of the variant with renamed entities
TASKS = (*SPECS, *(task + FRESH for task in SPECS))


def spec_of(task: str) -> Spec:
    """The benchmark of a task name, with or without ``_fresh``.

    Raises:
        UserError: There is no such task.
    """
    if task not in TASKS:
        raise unknown("RuleQA set", task, TASKS)
    return SPECS[task.removesuffix(FRESH)]
