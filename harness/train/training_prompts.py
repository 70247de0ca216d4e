"""The training prompts of a generator: those that the method itself sends for the questions of F_G.

The method runs in the driver with the same retriever and rule bank as in an evaluation; only Generate is served by a
recorder. So the prompts of training and inference are equal byte for byte, and a prompt that is too long drops its
lowest-ranked documents in the same way.

If a question has several gold answers, the target is the one that the best-ranked document in the prompt states, or the
first if no document states one. The paper does not say. :func:`taught` decides about prompts that do not state it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from lm_eval_rag.harness.backends.corpora import Corpora, ExamplesBackend, RetrieveBackend, RulesBackend
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Examples, Generate, MatchRules, Retrieve
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.driver import Driver
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.progress import Bar
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, Step
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.data.tables import read_parquet
from lm_eval_rag.harness.generators.base import Generator
from lm_eval_rag.harness.generators.fit import Fitted, fit

log = logging.getLogger(__name__)
Unstated = Literal["keep", "drop", "abstain"]
UNSTATED: tuple[str, ...] = get_args(Unstated)
ABSTENTION = "I don't know"


@dataclass(frozen=True, slots=True)
class GeneratorQuestion:
    """A question of F_G with its task and gold answers."""

    task: str
    query: Query
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A question with the method's prompt.

    Args:
        answer: The target: one of the gold answers.
        stated: Whether a document in the prompt states it.
        dropped: Number of documents that did not fit.
        version: Version of the prompt's wording.
        parts: The prompt before it was rendered.
    """

    question: GeneratorQuestion
    prompt: str
    answer: str
    dropped: int
    version: str
    stated: bool
    parts: Prompt


@dataclass(slots=True)
class Recorder:
    """Serves Generate with an empty text and records each prompt, by query, as it would have been sent."""

    generator: Generator
    max_tokens: int
    limit: int | None = None
    batch: int = 512
    sent: dict[Query, tuple[Prompt, Fitted]] = field(default_factory=dict)

    def serve(self, requests: Sequence[tuple[Query, Generate]]) -> list[Served | CallError]:
        """An empty text for each ask; a CallError if the prompt does not fit even without documents."""
        return [self._record(query, ask) for query, ask in requests]

    def _record(self, query: Query, ask: Generate) -> Served | CallError:
        if not isinstance(ask.prompt, Prompt) or query in self.sent:
            raise UserError(
                "Training needs a method that generates once per question, with a Prompt, such as rulerag_ft and "
                "standard_rag. Give another --method."
            )
        fitted = fit(ask.prompt, self.generator, self.max_tokens, self.limit)
        if isinstance(fitted, CallError):
            return fitted
        self.sent[query] = (ask.prompt, fitted)
        return Served(
            ("",), Step("Generate", fitted.text, "", prompt_tokens=fitted.tokens, dropped_passages=fitted.dropped)
        )


def read_questions(task: str, corpus_id: str) -> list[GeneratorQuestion]:
    """The whole F_G of a task, without questions that have no answer.

    Raises:
        UserError: The task has none.
    """
    corpus = open_corpus(corpus_id)
    assert corpus.folder is not None
    table = read_parquet(corpus.folder / "generator_train.parquet", ("id", "text", "time", "answers"))
    if not table.num_rows:
        raise UserError(
            f"{task} has no generator training data (F_G): generator_train.parquet in {corpus.folder} is empty. Give "
            "a --task with F_G, such as ruleqa_i."
        )
    rows = [row for row in table.to_pylist() if row["answers"]]
    if not rows:
        raise UserError(
            f"None of the {table.num_rows} generator training questions of {task} has an answer: the column answers in "
            f"{corpus.folder / 'generator_train.parquet'} is empty. Build the task again, or give another --task."
        )
    if len(rows) < table.num_rows:
        log.warning("%d training questions of %s have no answer and are left out.", table.num_rows - len(rows), task)
    return [
        GeneratorQuestion(task, Query(row["id"], row["text"], row["time"], corpus_id), tuple(row["answers"]))
        for row in rows
    ]


def split(
    questions: Sequence[GeneratorQuestion], *, rows: int | None, dev: int, seed: int
) -> tuple[list[GeneratorQuestion], list[GeneratorQuestion]]:
    """Disjoint training and dev questions, drawn by the seed.

    Args:
        rows: Maximum number of training questions; None for all.
        dev: Number of dev questions, at most a tenth of all and at least one. They do not depend on ``rows``.

    Raises:
        UserError: Fewer than two questions.
    """
    if len(questions) < 2:
        raise UserError(f"F_G has {len(questions)} question, but training needs at least two. Give another --task.")
    drawn = random.Random(seed).sample(questions, len(questions))
    n_dev = max(1, min(dev, len(drawn) // 10))
    return drawn[n_dev:][:rows], drawn[:n_dev]


def build_rows(
    method: Callable[[Query], Plan[Answer]],
    corpora: Corpora,
    questions: Sequence[GeneratorQuestion],
    generator: Generator,
    *,
    max_tokens: int,
    limit: int | None = None,
) -> list[Row]:
    """The method's prompt for every question, in order; prompts that do not fit even without documents are left out.

    Args:
        generator: Counts tokens and knows the model's context; it does not generate.
        max_tokens: Limit of an answer, as in the evaluation.
        limit: Maximum number of tokens of a prompt; the model's context is a further limit.
    """
    recorder, journal = Recorder(generator, max_tokens, limit), Journal(None)
    backends: dict[type, Any] = {
        Retrieve: RetrieveBackend(corpora, journal),
        MatchRules: RulesBackend(corpora),
        Examples: ExamplesBackend(corpora),
        Generate: recorder,
    }
    bar = Bar(len(questions), "prompts")
    try:
        Driver(method, backends, bar).run([question.query for question in questions])
    finally:
        bar.close()
    sent = [(question, *recorder.sent[question.query]) for question in questions if question.query in recorder.sent]
    rows = []
    for question, prompt, fitted in sent:
        answer = stated_answer(question.answers, fitted.shown)
        rows.append(
            Row(
                question,
                fitted.text,
                question.answers[0] if answer is None else answer,
                fitted.dropped,
                prompt.template.version,
                answer is not None,
                prompt,
            )
        )
    return rows


def stated_answer(answers: Sequence[str], passages: Sequence[Passage]) -> str | None:
    """The gold answer that the best-ranked passage states (as object, or anywhere in a free text); None if none is."""
    for passage in passages:
        for answer in answers:
            if answer == passage.fact[2] if passage.fact else answer in passage.text:
                return answer
    return None


def taught(rows: Sequence[Row], unstated: Unstated) -> list[Row]:
    """The rows to train on: those that do not state the answer are kept, left out, or answered "I don't know".

    To learn an answer that no document states is to learn to guess.
    """
    if unstated == "abstain":
        return [row if row.stated else replace(row, answer=ABSTENTION) for row in rows]
    return [row for row in rows if row.stated or unstated == "keep"]
