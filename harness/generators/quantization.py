"""Weights in 8 or 4 bits: ``gen_load_in_4bit=True``, ``gen_load_in_8bit=True``, ``gen_bnb_*`` and ``gen_llm_int8_*``.

lm_eval hands these on as they are, which transformers 5 refuses; here they become the ``quantization_config`` that it
takes. What is not said is as in ``lm-eval-rag train generator --four-bit``: NF4, computed in the model's type.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.extras import need

BITS = ("load_in_4bit", "load_in_8bit")
PREFIXES = ("bnb_", "llm_int8_")


def split(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(all other arguments, those about bits); the second is {} where no bits are asked for.

    Raises:
        UserError: 4 and 8 bits at once, or details of what is not asked for.
    """
    about = {key: value for key, value in arguments.items() if key in BITS or key.startswith(PREFIXES)}
    others = {key: value for key, value in arguments.items() if key not in about}
    chosen = [name for name in BITS if about.get(name)]
    details = [f"gen_{key}" for key in about if key not in BITS]
    if len(chosen) > 1:
        raise UserError("gen_load_in_4bit and gen_load_in_8bit are both given. Give one of them.")
    if details and not chosen:
        raise UserError(f"{', '.join(details)} needs gen_load_in_4bit=True or gen_load_in_8bit=True.")
    return others, about if chosen else {}


def config(about: Mapping[str, Any], dtype: Any = None) -> Any:
    """transformers' BitsAndBytesConfig for what :func:`split` found.

    Args:
        dtype: The model's type; None or ``auto`` for bfloat16.

    Raises:
        UserError: An unknown option, or bitsandbytes is not installed.
    """
    need(f"gen_{next(name for name in BITS if about.get(name))}=True", "train", "bitsandbytes")
    from transformers import BitsAndBytesConfig

    known = inspect.signature(BitsAndBytesConfig).parameters
    for name in about:
        if name not in known:
            allowed = [f"gen_{one}" for one in known if one in BITS or one.startswith(PREFIXES)]
            raise unknown("argument", f"gen_{name}", allowed)
    computed = "bfloat16" if dtype in (None, "auto") else dtype
    four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": computed} if about.get("load_in_4bit") else {}
    return BitsAndBytesConfig(**{**four, **about})


def quantised(model_class: Any, quantization_config: Any) -> Any:
    """lm_eval's ``hf``, or a kind of it, that loads its weights so; it takes no such argument by itself."""

    class Quantised(model_class):  # type: ignore[misc]
        def _create_model(self, *args: Any, **options: Any) -> None:
            super()._create_model(*args, **{**options, "quantization_config": quantization_config})
            keep_form(self._model)

    return Quantised


def keep_form(model: Any) -> None:
    """Keep weights in 4 bits as they are loaded.

    On some CPUs bitsandbytes would give them another form at the first evaluation, which has no gradient and computes
    in bfloat16, so that an evaluation would say something else than training did.
    """
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
