"""A PEFT adapter for every local generator: ``gen_peft=FOLDER_OR_HUB_ID`` means the same for ``hf`` and ``vllm``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError

RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # vLLM takes no other max_lora_rank


def base_of(adapter: Path) -> str | None:
    """The base model that an adapter names: a Hub id, a folder, or ``tiny``.

    Raises:
        UserError: The folder holds no adapter.
    """
    named = _config(adapter).get("base_model_name_or_path")
    return str(named) if named else None


def hf_arguments(adapter: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of lm_eval's ``hf`` with the adapter's folder."""
    return {**arguments, "peft": str(adapter)}


def vllm_arguments(adapter: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of lm_eval's ``vllm`` with the adapter's folder, and room for its rank.

    Raises:
        UserError: The adapter is of a kind or a rank that vLLM does not run.
    """
    config = _config(adapter)
    if config.get("peft_type", "LORA") != "LORA":
        kind = config["peft_type"]
        raise UserError(f"gen_peft={adapter} is of type {kind}; vLLM runs LORA alone: give generator=hf.")
    rank = max([int(config.get("r", 8)), *map(int, (config.get("rank_pattern") or {}).values())])
    room = next((allowed for allowed in RANKS if allowed >= rank), None)
    if room is None:
        raise UserError(f"gen_peft={adapter} has rank {rank}; vLLM runs up to {RANKS[-1]}: give generator=hf.")
    others = {key: value for key, value in arguments.items() if key != "peft"}
    return {"max_lora_rank": room, **others, "lora_local_path": str(adapter)}


def _config(adapter: Path) -> dict[str, Any]:
    path = adapter / "adapter_config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict) or "base_model_name_or_path" not in config:
            raise ValueError("it names no base model")
    except (OSError, ValueError) as error:
        raise UserError(
            f"gen_peft={adapter} is no PEFT adapter: its adapter_config.json is missing or damaged ({error}). A model "
            "that was tuned in full is given with gen_pretrained=."
        ) from None
    return config
