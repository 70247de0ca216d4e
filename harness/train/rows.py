"""F_R, the training data of a retriever: questions, each with its rules and their oracle documents.

The oracle documents of a question and a rule state the rule's body for the question's subject and a gold answer
(RuleRAG, arXiv:2410.22353, section 4.1: "by entity name and relation-matching heuristics"). An RGFT example is a
question joined to one rule, with the oracle documents of this rule. An SSFT example is the question alone, with the
oracle documents of all its rules ("isolate the key component, rules, from fine-tuning data", section 5.1). A question
without oracle documents gives no example. Only the corpus's training part is used; the test questions are not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.core.types import Rule
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.tables import read_parquet
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.harness.rules.guided import JOINS

Mode = Literal["rgft", "ssft"]
Stated = Mapping[tuple[str, str, str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class RetrieverQuestion:
    """A question of F_R.

    Args:
        text: The question.
        answers: Its gold answers.
        rules: Its rules, selected as at inference.
        oracle: For each rule, the rows of its oracle documents, ascending.
        own: Rows of the documents that state the question's own relation with a gold answer, ascending.
    """

    text: str
    answers: tuple[str, ...]
    rules: tuple[Rule, ...]
    oracle: tuple[tuple[int, ...], ...]
    own: tuple[int, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The question joined to each of its rules, as at inference; only the question if it has no rules."""
        return tuple(dict.fromkeys(JOINS["rule"](self.text, rule) for rule in self.rules)) or (self.text,)


@dataclass(frozen=True, slots=True)
class Example:
    """A training example.

    Args:
        text: Input of the query tower.
        positives: Rows of its oracle documents; one is drawn at each step.
        stating: Rows of all documents that must not be negatives: they state a gold answer for the subject, by any of
            the question's rules or its own relation.
    """

    text: str
    positives: tuple[int, ...]
    stating: frozenset[int]


def read_questions(corpus: Corpus, n_rules: int = 3) -> list[RetrieverQuestion]:
    """The corpus's F_R, in file order.

    Args:
        n_rules: Maximum number of rules per question.

    Raises:
        UserError: The corpus has no F_R, or n_rules is below 1.
    """
    at_least("number of rules", n_rules)
    path = corpus.questions / "retriever_train.parquet" if corpus.questions else None
    if path is None or not path.is_file():
        raise UserError(
            f"Corpus {corpus.id!r} has no F_R to train a retriever on (no retriever_train.parquet). Give a task with "
            f"F_R, such as ruleqa_i."
        )
    rows = read_parquet(path, ("text", "subject", "relation", "answers")).to_pylist()
    stated, bank = _stated(corpus, {row["subject"] for row in rows}), RuleBank(corpus)
    questions = []
    for row in rows:
        subject, answers = row["subject"], row["answers"]
        rules = bank.match(row["text"], n_rules)
        oracle = tuple(_rows(stated, subject, rule.body, answers) for rule in rules)
        own = _rows(stated, subject, row["relation"], answers)
        questions.append(RetrieverQuestion(row["text"], tuple(answers), rules, oracle, own))
    if not any(any(question.oracle) for question in questions):
        raise UserError(
            f"In the F_R of {corpus.id!r} ({len(questions)} questions) no rule leads to a document with a gold answer, "
            "so there is nothing to train on. Give another task, or more rules."
        )
    return questions


def examples(questions: Sequence[RetrieverQuestion], mode: Mode, latest: int | None = None) -> list[Example]:
    """The examples of questions, in order.

    Args:
        latest: Maximum number of positives per rule: the last of its oracle documents. A temporal corpus is ordered by
            time, and recent documents support a rule better than old ones. None for all.
    """
    last = slice(None if latest is None else -latest, None)
    built = []
    for question in questions:
        stating = frozenset(question.own).union(*question.oracle)
        if mode == "rgft":
            joined = (JOINS["rule"](question.text, rule) for rule in question.rules)
            pairs = zip(joined, question.oracle, strict=True)
            built += [Example(text, rows[last], stating) for text, rows in pairs if rows]
        elif any(question.oracle):
            merged = sorted({row for rows in question.oracle for row in rows[last]})
            built.append(Example(question.text, tuple(merged), stating))
    return built


def split(
    questions: Sequence[RetrieverQuestion], dev: int, seed: int, rows: int | None = None
) -> tuple[list[RetrieverQuestion], list[RetrieverQuestion]]:
    """At most ``rows`` training questions and at most ``dev`` dev questions, drawn by the seed, in input order.

    All dev questions have oracle documents, because other questions do not measure the training. At most a fifth of the
    questions with oracle documents become dev questions.
    """
    at_least("dev", dev)
    with_oracle = [i for i, question in enumerate(questions) if any(question.oracle)]
    size = min(dev, len(with_oracle) // 5)
    draw = np.random.default_rng([seed, 1])
    dev_rows = set(draw.permutation(with_oracle)[:size].tolist())
    training_rows = draw.permutation([i for i in range(len(questions)) if i not in dev_rows])[:rows]
    return [questions[i] for i in sorted(training_rows.tolist())], [questions[i] for i in sorted(dev_rows)]


def _stated(corpus: Corpus, subjects: set[str]) -> Stated:
    """(subject, relation, object) -> rows of the documents about these subjects."""
    assert corpus.folder is not None
    table = read_parquet(corpus.folder / "corpus.parquet", ("subject", "relation", "object"))
    rows_by_fact: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    columns = (table.column(name).to_pylist() for name in table.column_names)
    for row, (subject, relation, object) in enumerate(zip(*columns, strict=True)):
        if subject in subjects:
            rows_by_fact[subject, relation, object].append(row)
    return rows_by_fact


def _rows(stated: Stated, subject: str, relation: str, answers: Sequence[str]) -> tuple[int, ...]:
    return tuple(
        sorted(row for answer in dict.fromkeys(answers) for row in stated.get((subject, relation, answer), ()))
    )
