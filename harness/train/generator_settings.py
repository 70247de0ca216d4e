"""Everything that a run of generator training is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.train.presets import Preset

MAX_TOKENS = 32  # of an answer, as the tasks of RuleQA have it


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a run of training is made of.

    Args:
        base: ``tiny``, a folder or a Hub id.
        mode: ``rgft``, or ``ssft``: the same without rules.
        preset: Hyperparameters.
        rows: Training questions of each task at most; None for all.
        dev: Dev questions of each task.
        accumulate: Parts that a step's prompts are read in.
        dtype: What the model computes in.
        device: ``cpu``, or None for a GPU where there is one.
        seed: Of the split, the adapter, dropout and the order of the rows.
    """

    base: str
    mode: Literal["rgft", "ssft"]
    preset: Preset
    rows: int | None = 2048
    dev: int = 200
    accumulate: int = 1
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    device: str | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise a UserError for a number out of range."""
        for name, lowest in (("rows", 1), ("dev", 1), ("accumulate", 1), ("seed", 0)):
            value = getattr(self, name)
            at_least(name, lowest if value is None else value, lowest)
        for name in ("epochs", "batch_size", "eval_every", "sequence_length", "lora_r"):
            at_least(name, getattr(self.preset, name))
        if self.preset.four_bit and not self.preset.lora:
            raise UserError("--four-bit holds the base model fixed, so --full cannot tune it: give --lora.")
        if not self.preset.learning_rate > 0:
            raise UserError(f"learning_rate={self.preset.learning_rate} is not allowed: give a number above 0.")
