"""The prompts that a generator is tuned on: those that the method itself sends for the questions of F_G.

The method runs through the driver, over the same retriever and rule bank as in an evaluation; only its Generate is
served by a recorder. So prompts of training and of inference are equal byte for byte, and a prompt that is too long
drops its lowest-ranked documents as it would there.

Of several gold answers the one is learnt that the best-ranked document in the prompt states; where no document states
one, the first. The paper does not say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora, ExamplesBackend, RetrieveBackend, RulesBackend
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Examples, Generate, MatchRules, Retrieve
from lm_eval_rag.harness.core.driver import Driver, Served
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.progress import Bar
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, Step
from lm_eval_rag.harness.data.corpus import open_corpus, read_parquet
from lm_eval_rag.harness.generators.base import Generator
from lm_eval_rag.harness.generators.fit import Fitted, fit


@dataclass(frozen=True, slots=True)
class Question:
    """A row of F_G: a question of a task, and its gold answers."""

    task: str
    query: Query
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A question with the prompt that the method sends for it.

    Args:
        answer: The gold answer that is learnt.
        dropped: Documents left out for want of room.
        version: Of the prompt's wording.
    """

    question: Question
    prompt: str
    answer: str
    dropped: int
    version: str


@dataclass(slots=True)
class Recorder:
    """Serves Generate with an empty text and keeps each prompt, by query, as it would have been sent."""

    generator: Generator
    max_tokens: int
    limit: int | None = None
    batch: int = 512
    sent: dict[Query, tuple[Prompt, Fitted]] = field(default_factory=dict)

    def serve(self, asked: Sequence[tuple[Query, Generate]]) -> list[Served | CallError]:
        """An empty text for each ask; a CallError where not even a prompt without documents fits."""
        return [self._record(query, ask) for query, ask in asked]

    def _record(self, query: Query, ask: Generate) -> Served | CallError:
        if not isinstance(ask.prompt, Prompt) or query in self.sent:
            raise UserError(
                "Training needs a method that generates once, from instruction, documents, rules and question (as "
                "rulerag_ft and standard_rag do); this one does not. Give another --method."
            )
        fitted = fit(ask.prompt, self.generator, self.max_tokens, self.limit)
        if isinstance(fitted, CallError):
            return fitted
        self.sent[query] = (ask.prompt, fitted)
        return Served(
            ("",), Step("Generate", fitted.text, "", prompt_tokens=fitted.tokens, dropped_passages=fitted.dropped)
        )


def read_questions(task: str, corpus_id: str) -> list[Question]:
    """All of a task's F_G.

    Raises:
        UserError: It has none.
    """
    corpus = open_corpus(corpus_id)
    assert corpus.folder is not None
    table = read_parquet(corpus.folder / "generator_train.parquet", ("id", "text", "time", "answers"))
    if not table.num_rows:
        raise UserError(
            f"{task} has no generator training rows (F_G): generator_train.parquet in {corpus.folder} is empty. Give "
            "--task a set that has some, such as ruleqa_i."
        )
    return [
        Question(task, Query(row["id"], row["text"], row["time"], corpus_id), tuple(row["answers"]))
        for row in table.to_pylist()
    ]


def split(
    questions: Sequence[Question], *, rows: int | None, dev: int, seed: int
) -> tuple[list[Question], list[Question]]:
    """Training and dev questions, disjoint, drawn by a seed.

    Args:
        rows: The most training questions; None for all.
        dev: Dev questions, at most a tenth of all and at least one. They depend on the seed and not on ``rows``.

    Raises:
        UserError: Fewer than two questions.
    """
    if len(questions) < 2:
        raise UserError(f"{len(questions)} row of F_G is too few: at least one to learn from and one to look at.")
    drawn = random.Random(seed).sample(questions, len(questions))
    held = max(1, min(dev, len(drawn) // 10))
    return drawn[held:][:rows], drawn[:held]


def build_rows(
    method: Callable[[Query], Plan[Answer]],
    corpora: Corpora,
    questions: Sequence[Question],
    generator: Generator,
    *,
    max_tokens: int,
    limit: int | None = None,
) -> list[Row]:
    """The method's prompt for every question, in order, without those that do not fit even without documents.

    Args:
        generator: Tells how many tokens a prompt has and how many there is room for; it does not generate.
        max_tokens: Of an answer, as in the evaluation.
        limit: The most tokens of a prompt, beside the model's own context.
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
    return [
        Row(
            question,
            fitted.text,
            choose(question.answers, _shown(prompt, fitted)),
            fitted.dropped,
            prompt.template.version,
        )
        for question, prompt, fitted in sent
    ]


def choose(answers: Sequence[str], passages: Sequence[Passage]) -> str:
    """The gold answer that the best-ranked passage states (as its object, or anywhere in a free text), or the first."""
    for passage in passages:
        for answer in answers:
            if answer == passage.fact[2] if passage.fact else answer in passage.text:
                return answer
    return answers[0]


def _shown(prompt: Prompt, fitted: Fitted) -> tuple[Passage, ...]:
    return prompt.passages[: len(prompt.passages) - fitted.dropped]
