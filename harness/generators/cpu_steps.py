"""Attention of the token that is being written, on a CPU: two products of matrices in place of torch's flash kernel.

For one token that kernel takes five times as long (bfloat16, 32 rows, 600 and 1,200 tokens before it), and it was most
of the time that a small model writes. Prompts, and all else that is longer than one token, stay with torch's.
"""

from __future__ import annotations

from typing import Any

NAME = "sdpa_of_cpu_steps"
TORCH = "sdpa"  # transformers' name of torch's own attention


def quicken(model: Any) -> None:
    """Let a model on a CPU attend this way, if it uses torch's attention by transformers' interface."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    uses = getattr(getattr(base, "config", None), "_attn_implementation", None)
    if uses != TORCH or base.device.type != "cpu" or not getattr(base, "_supports_attention_backend", False):
        return
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    base.set_attn_implementation(NAME)


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Any, None]:
    """Attention, as transformers calls it.

    Args:
        module: The layer.
        query: Shape (rows, heads, tokens, size).
        key: Shape (rows, heads of keys, all tokens, size), and ``value`` likewise; several heads may share one.
        attention_mask: True where a token is seen, or numbers to add; shape (rows, 1, tokens, all tokens). None sees
            all that came before.
        dropout: Of the weights, while training.
        scaling: Of the products; None for one over the root of the size.

    Returns:
        Shape (rows, tokens, heads, size), and None.
    """
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    special = any(options.get(name) is not None for name in ("position_bias", "softcap", "cache"))
    by_head = attention_mask is not None and attention_mask.shape[1] != 1
    if query.shape[2] != 1 or torch.is_grad_enabled() or special or by_head:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
        return output, None
    rows, heads, _, size = query.shape
    scale = size**-0.5 if scaling is None else scaling
    grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], size)
    products = (grouped * scale) @ key.transpose(2, 3)
    weights = products.float()
    if attention_mask is not None:
        seen = attention_mask[..., : key.shape[2]]
        weights = weights.masked_fill(~seen, float("-inf")) if seen.dtype == torch.bool else weights + seen
    shares = weights.softmax(-1).to(value.dtype)
    return (shares @ value).reshape(rows, 1, heads, value.shape[3]), None
