"""A transformer's query tower in training: all weights, or an adapter (LoRA) through PEFT.

Documents are embedded once by the frozen tower and kept as the dense retriever keeps them, so that training reads their
vectors and encodes queries alone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.corpus import Corpus
from lm_eval_rag.harness.errors import UserError
from lm_eval_rag.harness.extras import need
from lm_eval_rag.harness.retrieval import nearest
from lm_eval_rag.harness.retrieval.dense import Dense
from lm_eval_rag.harness.retrieval.encoders import Overrides, Tower, towers
from lm_eval_rag.harness.train.settings import Settings

log = logging.getLogger(__name__)
BATCH = 128  # dev queries at once
LORA_TARGETS = "all-linear"


class DenseEncoder:
    """A query tower over one or several corpora, as :class:`lm_eval_rag.harness.train.contrastive.QueryEncoder`.

    Raises:
        UserError: A package or the base model is missing, it cannot be loaded, or its tokenizer cannot pad.
    """

    def __init__(self, settings: Settings, corpora: Sequence[Corpus]) -> None:
        need("Training a transformer encoder", "train", "torch", "transformers", "sentence_transformers", "peft")
        queries, documents = towers(settings.encoder, None, None, Overrides())
        self._settings, self._tower = settings, queries
        self.model = _loaded(queries, settings)
        self.adapter = _adapter(self.model[0].auto_model, settings) if settings.lora else None
        self.retrievers = [Dense(corpus, queries, documents, device=settings.device) for corpus in corpora]
        self.module = _module(self.model, queries)

    def parameters(self) -> list[dict[str, Any]]:
        """The weights that are tuned."""
        return [
            {"params": [w for w in self.module.parameters() if w.requires_grad], "lr": self._settings.learning_rate}
        ]

    def search(self, part: int, texts: list[str], k: int) -> list[list[tuple[int, float]]]:
        """Exact search with the tower as it is now."""
        import torch

        self.module.eval()
        with torch.inference_mode():
            found = [self.module(part, texts[at : at + BATCH]).float().cpu() for at in range(0, len(texts), BATCH)]
        self.module.train()
        vectors = self.retrievers[part].vectors
        queries = np.ascontiguousarray(torch.cat(found).numpy())
        return nearest.search(vectors, nearest.flat(vectors), queries, k, exact=True)

    def save(self, folder: Path) -> None:
        """Write a PEFT folder, or an ordinary sentence-transformers one."""
        if self.adapter is not None:
            self.adapter.save_pretrained(str(folder))
        else:
            self.model.save(str(folder), create_model_card=False)


def _loaded(tower: Tower, settings: Settings) -> Any:
    """The tower as a sentence-transformers model."""
    import torch
    from sentence_transformers import SentenceTransformer

    folder = tower.checkpoint.folder
    if not (folder / "modules.json").is_file() and tower.pooling not in ("cls", "mean"):
        raise UserError(
            f"{settings.encoder!r} is read with pooling={tower.pooling}, which sentence-transformers do not know, so "
            "it cannot be trained here. Give a sentence-transformers folder, or an encoder with cls or mean pooling."
        )
    try:
        device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
        model = SentenceTransformer(modules=_modules(tower), device=device)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise UserError(
            f"{folder} cannot be loaded as a text encoder ({type(error).__name__}: {str(error).splitlines()[0]}). Give "
            "a sentence-transformers folder, or a Hugging Face encoder with its tokenizer."
        ) from error
    if getattr(model.tokenizer, "pad_token", "") is None:
        raise UserError(
            f"The tokenizer of {folder} has no padding token, so queries of unequal length make no batch. Set one "
            "(tokenizer.pad_token = ...; tokenizer.save_pretrained(...)) and train again."
        )
    if tower.max_length:
        model.max_seq_length = min(tower.max_length, model.max_seq_length or tower.max_length)
    return model


def _adapter(encoder: Any, settings: Settings) -> Any:
    """A new LoRA adapter, which PEFT puts into the encoder where it stands; all other weights are frozen."""
    import torch
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=settings.lora_rank,
        lora_alpha=2 * settings.lora_rank,
        target_modules=LORA_TARGETS,
        task_type="FEATURE_EXTRACTION",
    )
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        return get_peft_model(encoder, config)


def _modules(tower: Tower) -> list[Any]:
    """The modules of a sentence-transformers folder, or those that make one of a plain encoder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    folder = str(tower.checkpoint.folder)
    if tower.checkpoint.has("modules.json"):
        return list(SentenceTransformer(folder, device="cpu"))
    encoder = modules.Transformer(folder)
    found = [encoder, modules.Pooling(encoder.get_embedding_dimension(), pooling_mode=str(tower.pooling))]
    return [*found, modules.Normalize()] if tower.normalize else found


def _module(model: Any, tower: Tower) -> Any:
    import torch

    class QueryModule(torch.nn.Module):  # type: ignore[misc]
        """Texts to vectors, as :class:`lm_eval_rag.harness.retrieval.towers.Encoder` gives them."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, part: int, texts: Sequence[str]) -> Any:
            read = getattr(self.model, "preprocess", None) or self.model.tokenize  # the older name
            inputs = read([tower.prefix + text for text in texts])
            device = next(self.model.parameters()).device
            moved = {name: v.to(device) if hasattr(v, "to") else v for name, v in inputs.items()}
            vectors = self.model(moved)["sentence_embedding"]
            return torch.nn.functional.normalize(vectors, dim=1) if tower.normalize else vectors

    return QueryModule()
