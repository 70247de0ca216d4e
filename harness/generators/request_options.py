"""A request to a server or an engine in lm_eval's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.generators.turn_end import stop_ids


def request_options(
    spec: ModelSpec, lm: Any, decoding: Decoding, seed: int, *, is_api: bool, turn_ends: Sequence[int] = ()
) -> dict[str, Any]:
    """lm_eval's options for one request.

    Args:
        lm: The lm_eval model of ``spec``.
        seed: Of a sampled draw.
        turn_ends: Ids of tokens that end a reply beside the checkpoint's own (:mod:`.turn_end`).
    """
    until = list(decoding.sent)[: spec.arguments.get("max_stops")]  # replies are cut at all of them when they are read
    options: dict[str, Any] = {"until": until, "max_gen_toks": decoding.max_tokens}
    if decoding.temperature > 0:
        options |= {"do_sample": True, "temperature": decoding.temperature}
        if is_api or spec.is_vllm:  # no other is known to take one
            options["seed"] = seed
    elif not is_api:
        options["do_sample"] = False  # said nothing, lm_eval's vllm samples at temperature 1
    if spec.is_vllm:
        ends = list(turn_ends)
        if not lm.think_end_token:  # lm_eval's shows special tokens, its hf does not
            options["skip_special_tokens"] = True
            ends += [id_ for id_ in stop_ids(lm.tokenizer, decoding.stop) if id_ not in ends]
        if ends or not lm.think_end_token:
            options["stop_token_ids"] = ends
    if not until and spec.is_chat_api and not spec.name.startswith("anthropic"):
        options["stop"] = None  # servers refuse the empty list that lm_eval would send
    if spec.logprobs:
        options["logprobs"] = True
        options |= {"top_logprobs": decoding.alternatives} if decoding.alternatives else {}
    return {**options, **spec.extra_body}
