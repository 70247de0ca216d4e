"""A transformer query tower in training: all weights, or an adapter (LoRA) by PEFT.

The frozen document tower embeds the documents once, and the vectors are stored as the dense retriever stores them. So
training only encodes queries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.checkpoints.locate import load_errors, reason
from lm_eval_rag.harness.checkpoints.tokenizer import need_room, need_tokenizer_files, need_words
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import nearest
from lm_eval_rag.harness.retrieval.dense import Dense
from lm_eval_rag.harness.retrieval.encoders import Overrides, Tower, need_roles, towers
from lm_eval_rag.harness.retrieval.towers import load_plain, reader
from lm_eval_rag.harness.train.settings import Settings

log = logging.getLogger(__name__)
BATCH = 128  # dev queries per batch
LORA_TARGETS = "all-linear"


class DenseEncoder:
    """A query tower over one or several corpora; see :class:`lm_eval_rag.harness.train.contrastive.QueryEncoder`.

    Args:
        text: One of the training questions.

    Raises:
        UserError: A package or the base model is missing, the model cannot be loaded, or its tokenizer cannot pad, does
            not know the words of ``text``, or has more tokens than the model.
    """

    def __init__(self, settings: Settings, corpora: Sequence[Corpus], text: str) -> None:
        need("Training a transformer encoder", "train", "torch", "transformers", "sentence_transformers", "peft")
        queries, documents = towers(settings.encoder, None, None, Overrides())
        need_roles(queries, documents)
        self._settings = settings
        self._network = _loaded(queries, settings, text)
        self.adapter = _adapter(self._network.encoder, settings) if settings.lora else None
        self.retrievers = [Dense(corpus, queries, documents, device=settings.device) for corpus in corpora]
        self.module = _module(self._network, queries)

    def parameters(self) -> list[dict[str, Any]]:
        """The trained weights."""
        return [
            {"params": [w for w in self.module.parameters() if w.requires_grad], "lr": self._settings.learning_rate}
        ]

    def search(self, part: int, texts: list[str], k: int) -> list[list[tuple[int, float]]]:
        """Exact search with the current weights."""
        import torch

        self.module.eval()
        with torch.inference_mode():
            encoded = [self.module(part, texts[at : at + BATCH]).float().cpu() for at in range(0, len(texts), BATCH)]
        self.module.train()
        vectors = self.retrievers[part].vectors
        queries = np.ascontiguousarray(torch.cat(encoded).numpy())
        return nearest.search(vectors, nearest.flat(vectors), queries, k, exact=True)

    def save(self, folder: Path) -> None:
        """Write a PEFT folder, a sentence-transformers folder, or (with ``pooler``) a Hugging Face folder."""
        if self.adapter is not None:
            self.adapter.save_pretrained(str(folder))
        else:
            self._network.save(str(folder))


@dataclass(frozen=True)
class Network:
    """A loaded tower.

    Args:
        whole: The whole model.
        encoder: The transformer in it; an adapter is added to it.
        embed: Texts to vectors, not normalised.
        save: Writes the model into a folder.
    """

    whole: Any
    encoder: Any
    embed: Callable[[list[str]], Any]
    save: Callable[[str], None]


def _loaded(tower: Tower, settings: Settings, text: str) -> Network:
    """The tower as a sentence-transformers model, or as a transformers model for ``pooler``, which the former lacks.

    Args:
        text: A text that its tokenizer must read.
    """
    import torch

    folder = tower.checkpoint.folder
    need_tokenizer_files(folder)
    device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        network, tokenizer = _plain(tower, device) if tower.pooling == "pooler" else _sentences(tower, device)
        need_room(tokenizer, network.encoder)
    except load_errors() as error:
        raise UserError(
            f"{folder} cannot be loaded as a text encoder ({type(error).__name__}: {reason(error)}). Give a "
            "sentence-transformers folder, or a Hugging Face encoder with its tokenizer."
        ) from error
    if getattr(tokenizer, "pad_token", "") is None:
        raise UserError(
            f"The tokenizer of {folder} has no padding token, so queries of different length cannot be batched. Set "
            "one (tokenizer.pad_token = ...; tokenizer.save_pretrained(...)) and train again."
        )
    need_words(tokenizer, folder, text)
    return network


def _plain(tower: Tower, device: str) -> tuple[Network, Any]:
    model, tokenizer = load_plain(tower)

    def save(folder: str) -> None:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    return Network(model, model, reader(tower, model.to(device), tokenizer), save), tokenizer


def _sentences(tower: Tower, device: str) -> tuple[Network, Any]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(modules=_modules(tower), device=device)
    if tower.max_length:
        model.max_seq_length = min(tower.max_length, model.max_seq_length or tower.max_length)

    def embed(texts: list[str]) -> Any:
        read = getattr(model, "preprocess", None) or model.tokenize  # the older name
        inputs = {name: v.to(model.device) if hasattr(v, "to") else v for name, v in read(texts).items()}
        return model(inputs)["sentence_embedding"]

    def save(folder: str) -> None:
        model.save(folder, create_model_card=False)

    return Network(model, model[0].auto_model, embed, save), model.tokenizer


def _adapter(encoder: Any, settings: Settings) -> Any:
    """A new LoRA adapter, which PEFT adds to the encoder in place; all other weights are frozen."""
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
    """The modules of a sentence-transformers folder, or new ones around a plain encoder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    folder = str(tower.checkpoint.folder)
    if tower.checkpoint.has("modules.json"):
        return list(SentenceTransformer(folder, device="cpu"))
    encoder = modules.Transformer(folder)
    pooled = [encoder, modules.Pooling(encoder.get_embedding_dimension(), pooling_mode=str(tower.pooling))]
    return [*pooled, modules.Normalize()] if tower.normalize else pooled


def _module(network: Network, tower: Tower) -> Any:
    import torch

    class QueryModule(torch.nn.Module):  # type: ignore[misc]
        """Texts to vectors, equal to those of :class:`lm_eval_rag.harness.retrieval.towers.Encoder`."""

        def __init__(self) -> None:
            super().__init__()
            self.model = network.whole

        def forward(self, part: int, texts: Sequence[str]) -> Any:
            vectors = network.embed([tower.prefix + text for text in texts])
            return torch.nn.functional.normalize(vectors, dim=1) if tower.normalize else vectors

    return QueryModule()
