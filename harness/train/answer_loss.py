"""The loss of a generator's training prompts, of which only the answers are learnt."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from lm_eval_rag.harness.train.generator_model import IGNORED


def computes_logits_at(model: Any) -> bool:
    """Whether a model can compute logits at given positions alone; with an adapter, its base decides."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "logits_to_keep" in signature(base.forward).parameters


def answer_loss(model: Any, inputs: Mapping[str, Any], num_items_in_batch: Any = None) -> Any:
    """Mean negative log-likelihood of the labels, natural log; logits are computed at their positions alone.

    Args:
        model: A causal language model whose ``forward`` takes ``logits_to_keep``.
        inputs: ``input_ids`` and ``attention_mask``, and ``labels`` with -100 where nothing is learnt; each of shape
            (rows, tokens).
        num_items_in_batch: Number of labels to divide by; None for those of ``inputs``.
    """
    from torch.nn.functional import cross_entropy

    next_tokens = inputs["labels"][:, 1:]
    places = (next_tokens != IGNORED).any(dim=0).nonzero().flatten()  # columns in which some row has a label
    wanted = next_tokens[:, places]
    logits = model(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], logits_to_keep=places, use_cache=False
    ).logits.float()
    total = cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / ((wanted != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch)
