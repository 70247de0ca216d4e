"""Encoders in memory: folders of sentence-transformers or of Hugging Face transformers, with PEFT adapters.

Texts are encoded in order of length, so that a batch has little padding. On a CPU with AMX, bfloat16 is two to three
times as fast as float32 (measured: scripts/bench_dense.py). Vectors are scaled to length 1 in float32 in either case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from lm_eval_rag.harness.checkpoints.locate import load_errors, reason
from lm_eval_rag.harness.checkpoints.tokenizer import need_room
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.retrieval.encoders import Tower

log = logging.getLogger(__name__)
Dtype = Literal["auto", "bfloat16", "float32"]
# Architectures that AutoModel would load wrongly: DPR's document encoder as a question encoder with random weights, and
# T5 with its decoder.
CLASSES = {
    "DPRContextEncoder": "DPRContextEncoder",
    "DPRQuestionEncoder": "DPRQuestionEncoder",
    "T5EncoderModel": "T5EncoderModel",
    "T5Model": "T5EncoderModel",
    "T5ForConditionalGeneration": "T5EncoderModel",
}
NO_LIMIT = 1 << 20  # a tokenizer without a limit reports 10^30


class Encoder:
    """A tower in memory.

    Args:
        tower: The encoder.
        dtype: Precision of the network; ``auto`` means :func:`fast_dtype`.
        device: Device of torch; None means CUDA if there is one, else the CPU.
        batch_size: Texts that are encoded at once.

    Raises:
        UserError: A package is missing, or the checkpoint cannot be loaded.
    """

    def __init__(
        self, tower: Tower, *, dtype: Dtype = "float32", device: str | None = None, batch_size: int = 64
    ) -> None:
        need("The dense retriever", "dense", "torch", "transformers", "sentence_transformers")
        if tower.adapter:
            need("A PEFT adapter", "hf", "peft")
        import torch

        self.tower, self.batch_size = tower, batch_size
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        load = _load_sentence_transformer if tower.pooling == "own" else _load_plain
        chosen = fast_dtype(device) if dtype == "auto" else dtype
        try:
            self._embed = load(tower, self.device, getattr(torch, chosen))
        except load_errors() as error:
            tuned = f" with the adapter {tower.adapter.folder}" if tower.adapter else ""
            raise UserError(
                f"{tower.checkpoint.folder}{tuned} cannot be loaded as a text encoder (pooling={tower.pooling}): "
                f"{type(error).__name__}: {reason(error)}. Give a sentence-transformers folder, or a Hugging Face "
                "encoder with its tokenizer."
            ) from error

    def encode(self, texts: Sequence[str]) -> Any:
        """float32 (len(texts), dimensions), in the order of the texts; of length 1 if the tower normalises.

        Raises:
            UserError: The network returned NaN or infinity.
        """
        import torch

        if not texts:
            raise ValueError("no texts to encode")
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        parts = []
        with torch.inference_mode():
            for start in range(0, len(order), self.batch_size):
                batch = [self.tower.prefix + texts[i] for i in order[start : start + self.batch_size]]
                vectors = self._embed(batch).float()
                if self.tower.normalize:
                    vectors = torch.nn.functional.normalize(vectors, dim=1)
                parts.append(vectors.cpu().numpy())
        sorted_vectors = np.concatenate(parts)
        if not np.isfinite(sorted_vectors).all():
            raise UserError(f"{self.tower.checkpoint.folder} gives vectors with NaN or infinity; try dtype=float32.")
        vectors = np.empty_like(sorted_vectors)
        vectors[order] = sorted_vectors
        return vectors


def fast_dtype(device: str | None = None) -> Literal["bfloat16", "float32"]:
    """bfloat16 if the hardware supports it (CUDA since Ampere; AMX, AVX512-BF16), else float32."""
    import torch

    if (device or "cuda").startswith("cuda") and torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    features: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bfloat16" if features.get("amx_bf16") or features.get("avx512_bf16") else "float32"


def _load_sentence_transformer(tower: Tower, device: Any, dtype: Any) -> Callable[[list[str]], Any]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tower.checkpoint.folder), device=str(device))
    need_room(model.tokenizer, getattr(model[0], "auto_model", None))
    if tower.adapter:
        _adapted(model[0].auto_model, tower)
    if tower.max_length:
        model.max_seq_length = min(tower.max_length, model.max_seq_length or tower.max_length)
    model = model.to(dtype).eval()

    def embed(batch: list[str]) -> Any:
        # prompt="": the text has its prefix already
        return model.encode(batch, batch_size=len(batch), prompt="", convert_to_tensor=True, show_progress_bar=False)

    return embed


def _load_plain(tower: Tower, device: Any, dtype: Any) -> Callable[[list[str]], Any]:
    model, tokenizer = load_plain(tower)
    if tower.adapter:
        model = _adapted(model, tower)
    return reader(tower, model.to(device=device, dtype=dtype).eval(), tokenizer)


def load_plain(tower: Tower) -> tuple[Any, Any]:
    """The network of a Hugging Face folder and its tokenizer, without an adapter.

    Raises:
        ValueError: Weights are missing; transformers would use random numbers in their place. Or the tokenizer has
            more tokens than the network.
    """
    import transformers

    folder = str(tower.checkpoint.folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    architecture = (tower.checkpoint.read("config.json").get("architectures") or ["AutoModel"])[0]
    kind = getattr(transformers, CLASSES.get(architecture, "AutoModel"))
    model, loading = kind.from_pretrained(folder, output_loading_info=True)
    missing = [key for key in loading["missing_keys"] if tower.pooling == "pooler" or "pooler" not in key]
    if missing:
        raise ValueError(f"it has no weights for {', '.join(sorted(missing)[:3])}")
    need_room(tokenizer, model)
    return model, tokenizer


def reader(tower: Tower, model: Any, tokenizer: Any) -> Callable[[list[str]], Any]:
    """A function from texts to vectors (texts, dimensions) by such a network, on its device; not normalised."""
    limits = (tower.max_length, tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None))
    longest = min((limit for limit in limits if limit), default=NO_LIMIT)
    pool = POOLINGS[tower.pooling]

    def embed(batch: list[str]) -> Any:
        truncation = {"truncation": True, "max_length": longest} if longest < NO_LIMIT else {}
        inputs = tokenizer(batch, padding=True, return_tensors="pt", **truncation).to(model.device)
        return pool(model(**inputs), inputs["attention_mask"])

    return embed


def _adapted(model: Any, tower: Tower) -> Any:
    """The model with its PEFT adapter merged, so that the adapter takes no time at inference."""
    from peft import PeftModel

    assert tower.adapter is not None
    return PeftModel.from_pretrained(model, str(tower.adapter.folder)).merge_and_unload()


def _mean(output: Any, mask: Any) -> Any:
    weights = mask.unsqueeze(-1).float()
    return (output.last_hidden_state.float() * weights).sum(1) / weights.sum(1).clamp(min=1)


def _pooler(output: Any, mask: Any) -> Any:
    pooled = getattr(output, "pooler_output", None)
    if pooled is None:
        raise UserError("pooling=pooler is not allowed: this encoder has no pooling layer. Give cls or mean.")
    return pooled


POOLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "cls": lambda output, mask: output.last_hidden_state[:, 0],
    "mean": _mean,
    "pooler": _pooler,
}
