"""Rule-guided fine-tuning of a generator (RGFT, RuleRAG, arXiv:2410.22353, section 3.2): instruction tuning on F_G.

The loss is on the answer and the end token alone. The checkpoint with the best exact match on a dev split of F_G,
answered as in an evaluation, is what stays in the folder; of several tasks the mean counts, of equals the first.

Departures: Table 7 names no optimizer and no schedule; here AdamW with linear decay. Weights are tuned in full
precision and computed with in ``dtype`` (bfloat16 where nothing is said).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.plugin.arguments import Setup
from lm_eval_rag.harness.train.generator_model import Loaded, load
from lm_eval_rag.harness.train.generator_outcome import Outcome
from lm_eval_rag.harness.train.generator_settings import MAX_TOKENS, Settings
from lm_eval_rag.harness.train.generator_trainer import fit_model
from lm_eval_rag.harness.train.training_prompts import Row, build_rows, read_questions, split

log = logging.getLogger(__name__)


def train_generator(settings: Settings, setup: Setup, corpora: dict[str, str], out: Path) -> dict[str, Any]:
    """Tune a generator, or go on where a run of the same settings was cut off.

    Args:
        setup: The method that builds the prompts, with its parameters, and the retriever.
        corpora: Corpus id of each task.
        out: The checkpoint's folder: an ordinary transformers folder, or a PEFT folder, with ``rulerag.json``.

    Returns:
        What was measured: ``dev_em`` (percent) of the checkpoint, its ``epoch``, and so on; see ``rulerag.json``.

    Raises:
        UserError: Bad settings, a missing package or base model, no F_G, a folder with another run, or a loss that is
            no number (the best checkpoint so far stays).
    """
    settings.check()
    need("Training a generator", "train", "torch", "transformers", "trl", "peft", "accelerate", "datasets")
    told = {**asdict(settings), "method": setup.name, "parameters": dict(setup.parameters), "corpora": corpora}
    told["retriever"] = [setup.corpora.retriever, dict(setup.corpora.options)]
    outcome = Outcome(out, settings.mode, told)
    if outcome.finished:
        log.info("%s is finished already.", out)
        return outcome.finished
    model = load(settings.base, settings.preset, dtype=settings.dtype, device=settings.device, seed=settings.seed)
    rows, dev, asked = _rows(settings, setup, corpora, model)
    outcome.prompt = rows[0].version
    outcome.known = _counts(rows, dev, asked)
    log.info("%s", ", ".join(f"{name} {value}" for name, value in outcome.known.items()))
    return fit_model(settings, model, rows, dev, outcome)


def _rows(settings: Settings, setup: Setup, corpora: dict[str, str], model: Loaded) -> tuple[list[Row], list[Row], int]:
    """The prompts to learn from and to look at, and how many questions they were built from."""
    parts = [
        split(read_questions(task, corpus_id), rows=settings.rows, dev=settings.dev, seed=settings.seed)
        for task, corpus_id in corpora.items()
    ]
    limit = settings.preset.sequence_length - MAX_TOKENS
    limit = min(limit, setup.max_prompt_tokens or limit)
    asked, made = 0, []
    for one in zip(*parts, strict=True):
        questions = [question for part in one for question in part]
        rows = build_rows(setup.bound(), setup.corpora, questions, model.generator, max_tokens=MAX_TOKENS, limit=limit)
        if not rows:
            raise UserError(
                f"No prompt fits into {limit} tokens and the model's context, not even without documents. Give a "
                "larger --sequence-length, fewer rules, or another --base."
            )
        asked += len(questions)
        made.append(rows)
    return made[0], made[1], asked


def _counts(rows: Sequence[Row], dev: Sequence[Row], asked: int) -> dict[str, int]:
    """How many rows there are, and what was left out for want of room."""
    every = [*rows, *dev]
    return {
        "rows": len(rows),
        "dev_rows": len(dev),
        "rows_left_out": asked - len(every),
        "prompts_with_dropped_documents": sum(row.dropped > 0 for row in every),
        "dropped_documents": sum(row.dropped for row in every),
    }
