"""F_R, what a retriever is tuned on: questions, each with its rules and the documents that these lead to.

The oracle documents of a question and a rule state the rule's body about the question's subject and a gold answer
(RuleRAG, arXiv:2410.22353, section 4.1: "by entity name and relation-matching heuristics"). An example of RGFT is a
question joined to one rule, with the documents of this rule; one of SSFT is the question alone, with those of all its
rules ("isolate the key component, rules, from fine-tuning data", section 5.1). A question whose rules lead nowhere
teaches neither. Questions and documents are those of the corpus's training part; the test questions are not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.core.types import Rule
from lm_eval_rag.harness.data.corpus import Corpus, read_parquet
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.harness.rules.guided import JOINS

Mode = Literal["rgft", "ssft"]
Stated = Mapping[tuple[str, str, str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Question:
    """A row of F_R.

    Args:
        text: The question.
        answers: Its gold answers.
        rules: The rules selected for it, as at inference.
        oracle: For each of them, the rows of its oracle documents, ascending.
        own: The rows of the documents that state the question's own relation with a gold answer, ascending.
    """

    text: str
    answers: tuple[str, ...]
    rules: tuple[Rule, ...]
    oracle: tuple[tuple[int, ...], ...]
    own: tuple[int, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The question with each of its rules, one at a time, as at inference; the question alone without rules."""
        return tuple(dict.fromkeys(JOINS["rule"](self.text, rule) for rule in self.rules)) or (self.text,)


@dataclass(frozen=True, slots=True)
class Example:
    """What the loss is taken of.

    Args:
        text: Input of the query tower.
        positives: Rows of its oracle documents, of which one is drawn each time.
        stating: Rows of all documents that are never a negative: they state a gold answer about the subject, through
            any of the question's rules or its own relation.
    """

    text: str
    positives: tuple[int, ...]
    stating: frozenset[int]


def read_questions(corpus: Corpus, n_rules: int = 3) -> list[Question]:
    """The corpus's F_R, in order.

    Args:
        n_rules: Rules for a question at most.

    Raises:
        UserError: The corpus has no F_R, or n_rules is below 1.
    """
    at_least("number of rules", n_rules)
    path = corpus.folder / "retriever_train.parquet" if corpus.folder else None
    if path is None or not path.is_file():
        raise UserError(
            f"Corpus {corpus.id!r} has no F_R to train a retriever on (no retriever_train.parquet). Give a task that "
            f"has one, such as ruleqa_i."
        )
    rows = read_parquet(path, ("text", "subject", "relation", "answers")).to_pylist()
    stated, bank = _stated(corpus, {row["subject"] for row in rows}), RuleBank(corpus)
    found = []
    for row in rows:
        subject, answers = row["subject"], row["answers"]
        rules = bank.match(row["text"], n_rules)
        oracle = tuple(_rows(stated, subject, rule.body, answers) for rule in rules)
        own = _rows(stated, subject, row["relation"], answers)
        found.append(Question(row["text"], tuple(answers), rules, oracle, own))
    if not any(any(question.oracle) for question in found):
        raise UserError(
            f"The F_R of {corpus.id!r} has {len(found)} questions, and no rule leads from any of them to a document "
            f"with a gold answer: nothing can be learnt from it. Give another task, or more rules."
        )
    return found


def examples(questions: Sequence[Question], mode: Mode, latest: int | None = None) -> list[Example]:
    """The examples of questions, in order.

    Args:
        latest: Positives of a rule at most, the last of its oracle documents. A temporal corpus is ordered by time: a
            rule holds from the documents of late rather than from those of long ago. None for all.
    """
    last = slice(None if latest is None else -latest, None)
    found = []
    for question in questions:
        stating = frozenset(question.own).union(*question.oracle)
        if mode == "rgft":
            joined = (JOINS["rule"](question.text, rule) for rule in question.rules)
            pairs = zip(joined, question.oracle, strict=True)
            found += [Example(text, rows[last], stating) for text, rows in pairs if rows]
        elif any(question.oracle):
            united = sorted({row for rows in question.oracle for row in rows[last]})
            found.append(Example(question.text, tuple(united), stating))
    return found


def split(
    questions: Sequence[Question], dev: int, seed: int, rows: int | None = None
) -> tuple[list[Question], list[Question]]:
    """Training questions, at most ``rows``, and ``dev`` others, at most a fifth of all; drawn by the seed, in order.

    A dev question has a rule that leads to a gold answer, since the others say nothing about what is learnt.
    """
    at_least("dev", dev)
    ruled = [i for i, question in enumerate(questions) if any(question.oracle)]
    size = min(dev, len(ruled) // 5)
    draw = np.random.default_rng([seed, 1])
    drawn = set(draw.permutation(ruled)[:size].tolist())
    kept = draw.permutation([i for i in range(len(questions)) if i not in drawn])[:rows]
    return [questions[i] for i in sorted(kept.tolist())], [questions[i] for i in sorted(drawn)]


def _stated(corpus: Corpus, subjects: set[str]) -> Stated:
    """(subject, relation, object) -> rows, for the documents about these subjects."""
    assert corpus.folder is not None
    table = read_parquet(corpus.folder / "corpus.parquet", ("subject", "relation", "object"))
    found: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    columns = (table.column(name).to_pylist() for name in table.column_names)
    for row, (subject, relation, object) in enumerate(zip(*columns, strict=True)):
        if subject in subjects:
            found[subject, relation, object].append(row)
    return found


def _rows(stated: Stated, subject: str, relation: str, answers: Sequence[str]) -> tuple[int, ...]:
    return tuple(
        sorted(row for answer in dict.fromkeys(answers) for row in stated.get((subject, relation, answer), ()))
    )
