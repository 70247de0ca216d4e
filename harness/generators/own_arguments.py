"""Checks of the ``gen_*`` arguments that are ours and not lm_eval's: which values, with which generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_eval_rag.harness.common.errors import UserError

if TYPE_CHECKING:
    from lm_eval_rag.harness.generators.spec import ModelSpec


def check_own(spec: ModelSpec) -> None:
    """Raise a UserError for a value that is not allowed, or not with this generator."""
    _check_adapter(spec)
    if _yes_or_no(spec, "extractive") and not spec.is_hf:
        raise UserError(
            f"gen_extractive=True is not possible with generator={spec.name}, which chooses its tokens by itself. "
            "Give generator=hf or an embedded one, or leave it out."
        )
    if _yes_or_no(spec, "logprobs") and (not spec.is_chat_api or spec.name.startswith("anthropic")):
        why = "whose API has none" if spec.is_chat_api else "which gives those of any text without it"
        raise UserError(
            "gen_logprobs=True is for generators behind a chat API that gives log-probabilities of its replies, not "
            f"for generator={spec.name}, {why}. Leave it out."
        )


def _yes_or_no(spec: ModelSpec, name: str) -> bool:
    given = spec.arguments.get(name, False)
    if not isinstance(given, bool):
        raise UserError(f"gen_{name}={given!r} is not allowed: give True or False.")
    return given


def _check_adapter(spec: ModelSpec) -> None:
    path, peft = spec.arguments.get("lora_local_path"), spec.arguments.get("peft")
    if path and (peft or not spec.is_vllm):
        raise UserError("gen_lora_local_path is vLLM's name of gen_peft. Give gen_peft alone, for any generator.")
    if peft and spec.is_api:
        raise UserError(
            f"gen_peft is not used by generator={spec.name}, whose model runs elsewhere: start the server with the "
            "adapter, and name it with gen_model."
        )
