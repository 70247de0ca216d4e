"""Hyperparameters of rule-guided fine-tuning of generators, by name (RuleRAG, arXiv:2410.22353, Table 7 and A.5).

The paper gives no unit for its warm-up and names no schedule; here the warm-up is in steps, and linear decay follows.
The paper's ``model parallel`` does not affect the result; it is only recorded.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """Table 7's hyperparameters for one base model.

    Args:
        learning_rate: Peak learning rate.
        warmup: Number of warm-up steps.
        batch_size: Prompts per step, over all devices.
        epochs: Number of epochs; the best checkpoint is kept.
        sequence_length: Maximum number of tokens of prompt and answer; the model's context is a further limit.
        lora_r: Rank of the adapter.
        lora_alpha: Scale of the adapter.
        lora_dropout: Dropout of the adapter, in [0, 1].
        model_parallel: Number of devices per model.
        lora: Train an adapter instead of all weights.
        four_bit: Load the base model in 4 bits.
        eval_every: Epochs between two evaluations on the dev split.
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
    # ours: all weights of the embedded generator, in minutes on a CPU; the rate at which rulerag_tiny_rgft was trained
    "tiny": Preset(1e-3, warmup=20, batch_size=16, epochs=3, lora=False, four_bit=False, eval_every=1),
}
