"""Checks of the ``gen_*`` arguments that are ours and not lm_eval's: which values, with which generators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_rag.harness.common.errors import UserError


def check_adapter(name: str, arguments: Mapping[str, Any], *, is_vllm: bool, is_api: bool) -> None:
    """Raise a UserError for an adapter that is named twice, or for a model that runs elsewhere."""
    path, peft = arguments.get("lora_local_path"), arguments.get("peft")
    if path and (peft or not is_vllm):
        raise UserError("gen_lora_local_path is vLLM's name of gen_peft. Give gen_peft alone, for any generator.")
    if peft and is_api:
        raise UserError(
            f"gen_peft is not used by generator={name}, whose model runs elsewhere: start the server with the "
            "adapter, and name it with gen_model."
        )


def check_extractive(name: str, arguments: Mapping[str, Any], *, is_hf: bool) -> None:
    """Raise a UserError for ``gen_extractive`` with a generator whose tokens are not chosen here."""
    if _yes_or_no(arguments, "extractive") and not is_hf:
        raise UserError(
            f"gen_extractive=True is not possible with generator={name}, which chooses its tokens by itself. "
            "Give generator=hf or an embedded one, or leave it out."
        )


def check_logprobs(name: str, arguments: Mapping[str, Any], *, is_chat_api: bool) -> None:
    """Raise a UserError for ``gen_logprobs`` with a generator that has no need of it, or cannot."""
    anthropic = any(str(one).startswith("anthropic") for one in (name, arguments.get("model")))
    if _yes_or_no(arguments, "logprobs") and (not is_chat_api or anthropic):
        why = "whose API has none" if is_chat_api else "which gives those of any text (a server: with gen_tokenizer=)"
        raise UserError(
            "gen_logprobs=True is for generators behind a chat API that gives log-probabilities of its replies, not "
            f"for generator={name}, {why}. Leave it out."
        )


def _yes_or_no(arguments: Mapping[str, Any], name: str) -> bool:
    given = arguments.get(name, False)
    if not isinstance(given, bool):
        raise UserError(f"gen_{name}={given!r} is not allowed: give True or False.")
    return given
