"""All settings of a generator training run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.train.presets import Preset
from lm_eval_rag.harness.train.training_prompts import UNSTATED, Unstated

Names = Literal["original", "fresh"]
NAMES: tuple[str, ...] = get_args(Names)
MAX_TOKENS = 32  # limit of an answer, as in the tasks of RuleQA


NUMBERS = {"rows": 1, "dev": 1, "accumulate": 1, "seed": 0, "patience": 1, "max_steps": 1}  # name -> the lowest
LATER = ("patience", "max_steps", "trust_remote_code")  # recorded only where they are given: older runs have none


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a generator training run.

    Args:
        base: ``tiny``, a folder or a Hub id.
        mode: ``rgft`` (with rules) or ``ssft`` (without).
        preset: Hyperparameters.
        rows: Maximum number of training questions per task; None for all.
        dev: Number of dev questions per task.
        accumulate: Gradient accumulation steps.
        dtype: Type for computing.
        device: ``cpu``, or None for a GPU if there is one.
        seed: Seed of the split, the adapter, dropout and the order of the rows.
        unstated: What becomes of training prompts whose documents do not state the answer: ``keep`` (as the paper),
            ``drop``, or ``abstain``, which teaches "I don't know". Dev prompts are all kept.
        names: ``original``, or ``fresh``: in each epoch half of the training prompts, drawn anew, have other, invented
            names of entities. Dev prompts keep their names.
        patience: End after so many evaluations without a better dev EM; None runs all epochs, as the paper.
        max_steps: End after so many steps, for a trial; None runs all epochs.
        trust_remote_code: Whether the base model may bring code of its own.
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
    unstated: Unstated = "keep"
    names: Names = "original"
    patience: int | None = None
    max_steps: int | None = None
    trust_remote_code: bool = False

    def recorded(self) -> dict[str, Any]:
        """As ``rulerag.json`` has them."""
        return {key: value for key, value in asdict(self).items() if value or key not in LATER}

    def check(self) -> None:
        """Raise a UserError for a number out of range."""
        for name, lowest in NUMBERS.items():
            value = getattr(self, name)
            at_least(name, lowest if value is None else value, lowest)
        for name in ("epochs", "batch_size", "eval_every", "sequence_length", "lora_r"):
            at_least(name, getattr(self.preset, name))
        if self.preset.four_bit and not self.preset.lora:
            raise UserError("A base model in 4 bits is frozen, so --four-bit excludes --full. Give --lora.")
        if self.unstated not in UNSTATED:
            raise unknown("unstated", self.unstated, UNSTATED)
        if self.names not in NAMES:
            raise unknown("names", self.names, NAMES)
        if not self.preset.learning_rate > 0:
            raise UserError(f"learning_rate={self.preset.learning_rate} is not allowed. Give a number above 0.")
