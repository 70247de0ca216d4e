"""The base model for fine-tuning, with its adapter if any, also as the generator that answers the dev split."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.checkpoints.locate import load_errors, reason
from lm_eval_rag.harness.checkpoints.tokenizer import need_room, need_tokenizer_files
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.quantization import keep_form
from lm_eval_rag.harness.generators.spec import EMBEDDED, ModelSpec
from lm_eval_rag.harness.train.presets import Preset
from lm_eval_rag.harness.train.training_prompts import Row

log = logging.getLogger(__name__)
IGNORED = -100  # label that the loss ignores


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in training, its tokenizer, and the same model as a generator, as in an evaluation."""

    model: Any
    tokenizer: Any
    generator: LMGenerator

    def encode(self, row: Row) -> dict[str, list[int]]:
        """``input_ids`` of prompt, answer and end token, and ``labels``, which ignore the prompt.

        The prompt is tokenized as in generation. If the tokens of prompt and answer together start with the prompt's
        tokens, the rest is the answer; else the answer is tokenized separately.
        """
        tokenize = self.generator.lm.tok_encode
        prompt, whole = tokenize(row.prompt), tokenize(f"{row.prompt} {row.answer}")
        answer = whole[len(prompt) :]
        if whole[: len(prompt)] != prompt:
            answer = self.tokenizer.encode(f" {row.answer}", add_special_tokens=False)
        answer = [*answer, self.tokenizer.eos_token_id]
        return {"input_ids": [*prompt, *answer], "labels": [*[IGNORED] * len(prompt), *answer]}

    def answer(self, rows: Sequence[Row], decoding: Decoding) -> list[str]:
        """The model's answers, as in an evaluation."""
        self.model.eval()
        texts = self.generator.generate([row.prompt for row in rows], decoding, [0] * len(rows)) if rows else []
        self.model.train()
        return [str(text).strip() for text in texts]


def load(
    base: str, preset: Preset, *, dtype: str, device: str | None, seed: int, trust_remote_code: bool = False
) -> Loaded:
    """Load the base model in ``dtype``; with ``preset.lora`` only a new adapter is trained.

    Raises:
        UserError: There is no such model, it has no tokenizer or one without end token or with too many tokens, or one
            process has several GPUs.
    """
    from lm_eval.models.huggingface import HFLM
    from transformers import set_seed

    set_seed(seed)
    place, trust = _place(device), {"trust_remote_code": True} if trust_remote_code else {}
    tokenizer = _tokenizer(base, trust)
    model = _adapted(_base(base, tokenizer, preset, dtype, place, trust), base, preset)
    generator = LMGenerator(ModelSpec("hf", {"pretrained": base}), chat=False)  # prompts are learnt as raw text
    generator.lm = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=max(preset.batch_size, 1))
    return Loaded(model, tokenizer, generator)


def _place(device: str | None) -> str:
    """``cpu``, or the GPU of this process."""
    import torch

    if device == "cpu" or not torch.cuda.is_available():
        return "cpu"
    if torch.cuda.device_count() > 1 and "LOCAL_RANK" not in os.environ:
        raise UserError(
            f"This process has {torch.cuda.device_count()} GPUs. Use all with `accelerate launch --no_python "
            "lm-eval-rag train generator ...`, or one with CUDA_VISIBLE_DEVICES=0."
        )
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"


def _tokenizer(base: str, trust: Mapping[str, Any]) -> Any:
    from transformers import AutoTokenizer

    need_tokenizer_files(base)
    try:
        tokenizer = AutoTokenizer.from_pretrained(EMBEDDED.get(base, base), **trust)
    except load_errors() as error:
        raise _missing(base, error) from None
    if tokenizer.eos_token_id is None:
        raise UserError(
            f"The tokenizer of {base} has no end token, so the model cannot learn to end an answer. Set eos_token in "
            "its tokenizer_config.json."
        )
    if tokenizer.pad_token_id is None:
        log.warning("The tokenizer of %s has no padding token; the end token is used, and the loss ignores it.", base)
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _base(base: str, tokenizer: Any, preset: Preset, dtype: str, place: str, trust: Mapping[str, Any]) -> Any:
    """The model on its device, in 4 bits (NF4) with ``preset.four_bit``."""
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    options: dict[str, Any] = {"dtype": getattr(torch, dtype), **trust}
    if preset.four_bit:
        from lm_eval_rag.harness.common.extras import need

        need("A base model in 4 bits", "train", "bitsandbytes")
        options["device_map"] = {"": place}
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=options["dtype"]
        )
    try:
        model = AutoModelForCausalLM.from_pretrained(EMBEDDED.get(base, base), **options)
        need_room(tokenizer, model)
    except load_errors() as error:
        raise _missing(base, error) from None
    if not preset.four_bit:
        return model.to(place)
    keep_form(model)
    return model


def _adapted(model: Any, base: str, preset: Preset) -> Any:
    if not preset.lora:
        return model
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=preset.lora_r, lora_alpha=preset.lora_alpha, lora_dropout=preset.lora_dropout, task_type="CAUSAL_LM"
    )
    try:
        adapted = get_peft_model(model, config)
    except ValueError as error:
        raise UserError(f"A LoRA adapter cannot be added to {base}: {error}. Give --full.") from None
    config.base_model_name_or_path = base  # the embedded model is recorded by name, not by a local path
    return adapted


def _missing(base: str, error: Exception) -> UserError:
    return UserError(
        f"The base model {base!r} cannot be loaded: {reason(error)}. Give --base tiny, a folder in transformers "
        "format, or a Hub id that can be downloaded or is in the cache."
    )
