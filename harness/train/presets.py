"""Hyperparameters of rule-guided fine-tuning of generators, by name (RuleRAG, arXiv:2410.22353, Table 7 and A.5).

The paper gives no unit for its warm-up, taken here as steps, and names no schedule, here linear decay after the
warm-up. Its ``model parallel`` is a matter of the machine and not of the result; it is kept for the record.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """What Table 7 fixes for one base model.

    Args:
        learning_rate: Peak rate.
        warmup: Steps up to it.
        batch_size: Prompts a step, over all devices.
        epochs: At most; the best checkpoint is kept.
        sequence_length: The most tokens of prompt and answer, beside the model's own context.
        lora_r: Rank of the adapter.
        lora_alpha: Its scale.
        lora_dropout: Share of its inputs that are dropped.
        model_parallel: Devices a model is spread over.
        lora: Tune an adapter rather than all weights.
        four_bit: Hold the base model in 4 bits.
        eval_every: Epochs from one look at the dev split to the next.
    """

    learning_rate: float
    warmup: int = 5
    batch_size: int = 8
    epochs: int = 50
    sequence_length: int = 5120
    lora_r: int = 8
    lora_alpha: int = 32
    lora_dropout: float = 0.05
    model_parallel: int = 1
    lora: bool = True
    four_bit: bool = True
    eval_every: int = 3


PRESETS = {
    "chatglm2_6b": Preset(3e-5, lora_r=4, lora_alpha=16),
    "mistral_7b": Preset(3e-5, lora_r=4, lora_alpha=16),
    "llama2_7b": Preset(3e-4, model_parallel=2),
    "llama2_13b": Preset(3e-4, warmup=10, batch_size=4, lora_r=16, model_parallel=4),
    # ours: the embedded generator is tuned whole, in minutes on a CPU
    "tiny": Preset(6e-4, warmup=20, batch_size=16, epochs=3, lora=False, four_bit=False, eval_every=1),
}
