"""Checks of the ``gen_*`` arguments that are ours and not lm_eval's: which values, with which generators."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown

# fields of a request that the method or the task decides
TAKEN = (
    "messages", "prompt", "model", "max_tokens", "max_completion_tokens", "temperature", "stop", "seed", "n", "stream",
    "logprobs", "top_logprobs",
)  # fmt: skip


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


def check_folders(arguments: Mapping[str, Any]) -> None:
    """Raise a UserError for a checkpoint that is given as a path and is not there: it is no name of the Hub's."""
    for key in ("pretrained", "peft", "tokenizer"):
        given = str(arguments.get(key) or "")
        if given.startswith(("/", ".", "~")) and not Path(given).exists():
            raise UserError(f"gen_{key}={given}: this folder does not exist. Give a folder, or ORG/NAME of the Hub.")


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


def check_max_stops(name: str, arguments: Mapping[str, Any], *, is_api: bool) -> None:
    """Raise a UserError for ``gen_max_stops``, the most stop strings of a request, without requests."""
    if "max_stops" in arguments and not is_api:
        raise UserError(f"gen_max_stops is for generators behind an API, not for generator={name}. Leave it out.")


def extra_body(name: str, arguments: Mapping[str, Any], *, is_api: bool) -> Mapping[str, Any]:
    """The fields that ``gen_extra_body`` adds to every request of a generation: a dictionary, or JSON.

    Raises:
        UserError: It is neither, has a field that a request has anyway, or the generator takes no requests.
    """
    given = arguments.get("extra_body", {})
    try:
        fields = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        fields = None
    if not isinstance(fields, Mapping):
        raise UserError(f'gen_extra_body={given!r} is not allowed: give JSON, such as {{"repetition_penalty": 1.0}}.')
    taken = sorted(set(fields) & set(TAKEN))
    if taken:
        raise UserError(
            f"gen_extra_body sets {', '.join(taken)}, which the method or the task decides. Leave it out; limits and "
            "temperatures are parameters of the method, or --gen_kwargs of the task."
        )
    if fields and not is_api:
        raise UserError(f"gen_extra_body is for generators behind an API, not for generator={name}. Leave it out.")
    return fields


def check_known(name: str, arguments: Mapping[str, Any], ours: Iterable[str]) -> None:
    """Raise a UserError for an argument that lm_eval's class of a server does not know, which it would pass over.

    Args:
        ours: Names of arguments that are not lm_eval's.
    """
    from lm_eval.api.registry import get_model
    from lm_eval.models.api_models import TemplateAPI

    if not issubclass(get_model(name), TemplateAPI):
        return
    known = set(ours)
    for kind in get_model(name).__mro__:
        if "__init__" in vars(kind):
            known |= set(inspect.signature(kind.__init__).parameters) - {"self", "args", "kwargs"}
    for given in arguments:
        if given not in known:
            hint = 'Fields of a request of your own go into gen_extra_body, such as {"top_k": 20}.'
            raise unknown("argument", f"gen_{given}", [f"gen_{one}" for one in known], hint)


def _yes_or_no(arguments: Mapping[str, Any], name: str) -> bool:
    given = arguments.get(name, False)
    if not isinstance(given, bool):
        raise UserError(f"gen_{name}={given!r} is not allowed: give True or False.")
    return given
