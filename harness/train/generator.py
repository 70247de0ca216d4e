"""Rule-guided fine-tuning of a generator (RGFT, RuleRAG, arXiv:2410.22353, section 3.2): instruction tuning on F_G.

The loss is computed on the answer and the end token only. The folder keeps the checkpoint with the best exact match on
a dev split of F_G, which is answered as in an evaluation. With several tasks the mean is used; ties go to the earlier
checkpoint.

Departures: Table 7 names no optimizer and no schedule; here AdamW with linear decay. Weights are updated in full
precision, and the forward and backward passes use ``dtype`` (default bfloat16).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.tokenizer import need_words
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.plugin.arguments import Setup
from lm_eval_rag.harness.plugin.training_warnings import warn_of_training
from lm_eval_rag.harness.train.generator_model import Loaded, load
from lm_eval_rag.harness.train.generator_outcome import Outcome
from lm_eval_rag.harness.train.generator_settings import MAX_TOKENS, Settings
from lm_eval_rag.harness.train.generator_trainer import fit_model
from lm_eval_rag.harness.train.renamed_rows import renamed_rows
from lm_eval_rag.harness.train.training_prompts import GeneratorQuestion, Row, build_rows, read_questions, split, taught

log = logging.getLogger(__name__)


def train_generator(settings: Settings, setup: Setup, corpora: dict[str, str], out: Path) -> dict[str, Any]:
    """Train a generator, or resume an interrupted run with the same settings.

    Args:
        setup: The method that builds the prompts, with its parameters, and the retriever.
        corpora: Task -> corpus id.
        out: Folder of the checkpoint: a transformers folder or a PEFT folder, with ``rulerag.json``.

    Returns:
        The measured results: ``dev_em`` (percent) of the checkpoint, its ``epoch``, and so on; see ``rulerag.json``.

    Raises:
        UserError: Bad settings, a missing package or base model, a tokenizer without the words of a question, no F_G, a
            folder with another run, or a loss that is not finite (the best checkpoint so far is kept).
    """
    settings.check()
    need("Training a generator", "train", "torch", "transformers", "trl", "peft", "accelerate", "datasets")
    outcome = Outcome(out, settings.mode, recorded(settings, setup, corpora))
    if outcome.finished:
        log.info("%s is already finished.", out)
        return outcome.finished
    model = load(
        settings.base,
        settings.preset,
        dtype=settings.dtype,
        device=settings.device,
        seed=settings.seed,
        trust_remote_code=settings.trust_remote_code,
    )
    questions = [read_questions(task, corpus_id) for task, corpus_id in corpora.items()]
    need_words(model.tokenizer, settings.base, questions[0][0].query.text)
    warn_of_training(setup, corpora.values())
    rows, dev, n_questions = _rows(settings, setup, questions, model)
    trained = _taught(rows, settings)
    counts = _counts(rows, dev, n_questions, len(trained))
    log.info("%s", ", ".join(f"{name} {value}" for name, value in counts.items()))
    outcome.prompt = rows[0].version
    outcome.known = {**counts, "dev_questions": dict(Counter(row.question.task for row in dev))}
    return fit_model(settings, model, _by_epoch(settings, setup, trained, model), dev, outcome)


def _taught(rows: Sequence[Row], settings: Settings) -> list[Row]:
    """The rows to train on, by ``settings.unstated``."""
    trained = taught(rows, settings.unstated)
    if not trained:
        raise UserError(
            f"No document of the {len(rows)} training prompts states a gold answer, so --unstated drop leaves none. "
            "Give --unstated keep or abstain, or another --retriever."
        )
    return trained


def recorded(settings: Settings, setup: Setup, corpora: dict[str, str]) -> dict[str, Any]:
    """All settings of a run, as ``rulerag.json`` has them."""
    own = {**settings.recorded(), "method": setup.name, "parameters": dict(setup.parameters), "corpora": corpora}
    return {**own, "retriever": [setup.corpora.retriever, dict(setup.corpora.options)]}


def _by_epoch(settings: Settings, setup: Setup, rows: list[Row], model: Loaded) -> list[list[Row]]:
    """The training rows of each epoch; one list if they are the same in all."""
    if settings.names == "original":
        return [rows]
    options: dict[str, Any] = {"seed": settings.seed, "max_tokens": MAX_TOKENS, "limit": _limit(settings, setup)}
    return [renamed_rows(rows, model.generator, epoch=epoch, **options) for epoch in range(settings.preset.epochs)]


def _limit(settings: Settings, setup: Setup) -> int:
    """Maximum number of tokens of a prompt."""
    limit = settings.preset.sequence_length - MAX_TOKENS
    return min(limit, setup.max_prompt_tokens or limit)


def _rows(
    settings: Settings, setup: Setup, asked: Sequence[Sequence[GeneratorQuestion]], model: Loaded
) -> tuple[list[Row], list[Row], int]:
    """The training and dev prompts, and the number of questions that they were built from.

    Args:
        asked: The questions of each task.
    """
    splits = [split(part, rows=settings.rows, dev=settings.dev, seed=settings.seed) for part in asked]
    limit = _limit(settings, setup)
    n_questions, both = 0, []
    for by_task in zip(*splits, strict=True):
        questions = [question for part in by_task for question in part]
        rows = build_rows(setup.bound(), setup.corpora, questions, model.generator, max_tokens=MAX_TOKENS, limit=limit)
        if not rows:
            raise UserError(
                f"No prompt fits into {limit} tokens and the model's context, even without documents. Give a larger "
                "--sequence-length, fewer rules, or another --base."
            )
        n_questions += len(questions)
        both.append(rows)
    return both[0], both[1], n_questions


def _counts(rows: Sequence[Row], dev: Sequence[Row], n_questions: int, trained: int) -> dict[str, int]:
    """Number of rows, of rows and documents that did not fit, and of training rows that do not state the answer.

    ``rows_trained`` is what ``--unstated drop`` leaves of ``rows``.
    """
    every = [*rows, *dev]
    return {
        "rows": len(rows),
        "rows_trained": trained,
        "dev_rows": len(dev),
        "rows_left_out": n_questions - len(every),
        "prompts_with_dropped_documents": sum(row.dropped > 0 for row in every),
        "dropped_documents": sum(row.dropped for row in every),
        "rows_without_the_answer": sum(not row.stated for row in rows),
    }
