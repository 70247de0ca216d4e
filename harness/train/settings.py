"""Everything that a run of retriever training is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.common.errors import UserError, at_least

STATIC = "static"


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of ``lm-eval-rag train retriever``.

    Args:
        encoder: ``static``, or a preset, folder or Hub id of the dense retriever.
        mode: ``rgft`` (question and one rule), ``ssft`` (the question alone).
        n_rules: Rules for a question.
        rows: Questions of each task at most, drawn by the seed; None for all of F_R.
        latest: Oracle documents of a question and a rule at most, the last ones of the corpus; None for all.
        epochs: Times that every example is seen.
        batch_size: Examples a step, over all devices.
        learning_rate: At the start; it falls linearly to 0.
        temperature: Scores are divided by it.
        hard: Hard negatives of BM25 for each example.
        dev: Dev questions of each task, held out of F_R.
        eval_every: Epochs between two looks at the dev questions.
        lora: Whether an adapter is tuned in place of all weights (transformer encoders).
        lora_rank: Its rank.
        device: ``cpu``, or None for a GPU where there is one.
        seed: Of the dev split, the order, the drawn documents, the adapter and dropout.
    """

    encoder: str = STATIC
    mode: Literal["rgft", "ssft"] = "rgft"
    n_rules: int = 3
    rows: int | None = 6000
    latest: int | None = 1
    epochs: int = 8
    batch_size: int = 256
    learning_rate: float = 0.02
    temperature: float = 0.05
    hard: int = 8
    dev: int = 300
    eval_every: int = 2
    lora: bool = False
    lora_rank: int = 16
    device: Literal["cpu"] | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise a UserError for a value out of range."""
        for name in ("n_rules", "epochs", "batch_size", "dev", "eval_every", "lora_rank"):
            at_least(name, getattr(self, name))
        for name in ("rows", "latest"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name))
        for name in ("hard", "seed"):
            at_least(name, getattr(self, name), 0)
        for name in ("learning_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise UserError(f"{name}={getattr(self, name)} is not allowed: give a number above 0.")
        if self.lora and self.encoder == STATIC:
            raise UserError("--lora is for transformer encoders; the static tower is tuned whole. Leave it out.")


# Defaults by kind of encoder. A transformer's learning rate, batch and temperature are RuleRAG's, its epochs are ours.
# The static tower's were not searched; `latest` was set after a look at dev questions of F_R.
STATIC_DEFAULTS = Settings()
DENSE_DEFAULTS = Settings(
    encoder="",
    epochs=10,
    rows=None,
    latest=None,
    batch_size=32,
    learning_rate=1e-5,
    temperature=0.01,
    hard=0,
    eval_every=1,
    lora=True,
)
