"""All settings of a retriever training run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError, at_least

STATIC = "static"


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of ``lm-eval-rag train retriever``.

    Args:
        encoder: ``static``, or a preset, folder or Hub id of the dense retriever.
        mode: ``rgft`` (the question joined to one rule) or ``ssft`` (the question alone).
        n_rules: Maximum number of rules per question.
        rows: Maximum number of questions per task, drawn by the seed; None for all of F_R.
        latest: Maximum number of oracle documents per question and rule, the last ones of the corpus; None for all.
        epochs: Number of epochs.
        batch_size: Examples per step, over all devices.
        learning_rate: Initial learning rate; it decays linearly to 0.
        temperature: Temperature of the loss.
        hard: Number of BM25's hard negatives per example.
        dev: Number of dev questions per task, held out from F_R.
        eval_every: Epochs between two evaluations on the dev questions.
        lora: Whether to train an adapter instead of all weights (transformer encoders only).
        lora_rank: Rank of the adapter.
        device: ``cpu``, or None for a GPU if there is one.
        seed: Seed of the dev split, the order, the drawn documents, the adapter and dropout.
        max_steps: End after so many steps, for a trial; None runs all epochs.
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
    max_steps: int | None = None

    def recorded(self) -> dict[str, Any]:
        """As ``rulerag.json`` has them; ``max_steps`` only where it is given, since older notes have none."""
        return {key: value for key, value in asdict(self).items() if key != "max_steps" or value is not None}

    def steps(self, per_epoch: int) -> int:
        """Number of steps of a whole run, over which the learning rate decays to 0."""
        whole = self.epochs * per_epoch
        return whole if self.max_steps is None else min(whole, self.max_steps)

    def check(self) -> None:
        """Raise a UserError for a value out of range."""
        for name in ("n_rules", "epochs", "batch_size", "dev", "eval_every", "lora_rank"):
            at_least(name, getattr(self, name))
        for name in ("rows", "latest", "max_steps"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name))
        for name in ("hard", "seed"):
            at_least(name, getattr(self, name), 0)
        for name in ("learning_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise UserError(f"{name}={getattr(self, name)} is not allowed. Give a number above 0.")
        if self.lora and self.encoder == STATIC:
            raise UserError("--lora is for transformer encoders only. Leave it out for the static tower.")


# Defaults by kind of encoder. For transformers, learning rate, batch size and temperature are RuleRAG's; the number of
# epochs is ours. The static tower's defaults were not searched, except `latest`, which was set on dev questions of F_R.
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
# (encoder, mode) -> the learning rate of a LoRA adapter that dev questions of F_R prefer of 2e-5, 6e-5 and 2e-4.
# Mean dev recall@10 on I, F and N: RGFT 70.7, 75.7, 79.1; SSFT 68.6, 67.4, 64.0. RuleRAG's 1e-5 is for all weights.
LORA_RATES = {("minilm", "rgft"): 2e-4, ("minilm", "ssft"): 2e-5}
