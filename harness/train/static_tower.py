"""The static query tower in torch, for training.

The trained parameters are those that :mod:`lm_eval_rag.harness.retrieval.static_queries` adds to the document tower: a
weight per group of features, an offset per segment and feature that occurs in ``OFTEN`` examples or more, and the
weight of the date. Rarer features, such as most names, keep the document tower's embedding. So the training is about
relations and transfers to unseen names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.static import Static
from lm_eval_rag.harness.retrieval.static_documents import WIDTH, embeddings, times
from lm_eval_rag.harness.retrieval.static_features import GROUPS, query_features
from lm_eval_rag.harness.retrieval.static_queries import TIME, QueryTower, base, compressed, save

OFTEN = 5  # minimum number of examples with a feature
SCALARS = 5.0  # factor of the weights' learning rate over that of the offsets, which have WIDTH components


class StaticEncoder:
    """A query tower over one or several corpora; see :class:`lm_eval_rag.harness.train.contrastive.QueryEncoder`.

    Args:
        retrievers: One per corpus; their document towers are used.
        texts: The inputs of all examples, by corpus; the frequent features in them are trained.
    """

    def __init__(self, retrievers: Sequence[Static], texts: Sequence[Sequence[str]], learning_rate: float) -> None:
        self._retrievers, self._rate = list(retrievers), learning_rate
        self.keys = frequent(texts)
        self.module = _module(self.keys, [retriever.documents for retriever in retrievers])

    def parameters(self) -> list[dict[str, Any]]:
        """The offsets, and the weights of groups and date."""
        scalars = [self.module.groups, self.module.time]
        return [
            {"params": [self.module.offsets], "lr": self._rate},
            {"params": scalars, "lr": SCALARS * self._rate},
        ]

    def tower(self) -> QueryTower:
        """The current tower, compressed as in the stored file."""
        offsets, groups, time = (
            weight.detach().cpu().numpy() for weight in (self.module.offsets, self.module.groups, self.module.time)
        )
        return compressed(self.keys, offsets, groups, float(np.exp(time)))

    def search(self, part: int, texts: list[str], k: int) -> list[list[tuple[int, float]]]:
        """The retriever's result with the current tower."""
        retriever = self._retrievers[part]
        retriever.tower = self.tower()
        return retriever.search(texts, k)

    def save(self, folder: Path) -> None:
        """Write ``model.safetensors``."""
        save(self.tower(), folder)


def retriever_of(corpus: Corpus) -> Static:
    """The retriever with its document tower and the untrained query tower."""
    return Static(corpus, base())


def frequent(texts: Sequence[Sequence[str]]) -> Any:
    """The tagged features that occur in ``OFTEN`` texts or more; uint64, ascending."""
    tagged = []
    for group in texts:
        features = query_features(group)
        pairs = np.unique(np.stack([features.texts.astype(np.uint64), features.tagged], axis=1), axis=0)
        tagged.append(pairs[:, 1])
    keys, count = np.unique(np.concatenate(tagged), return_counts=True)
    return keys[count >= OFTEN]


def _module(keys: Any, documents: Sequence[Any]) -> Any:
    import torch

    class QueryModule(torch.nn.Module):  # type: ignore[misc]
        """A differentiable :meth:`QueryTower.encode`."""

        def __init__(self) -> None:
            super().__init__()
            self.offsets = torch.nn.Parameter(torch.zeros(len(keys), WIDTH))
            self.groups = torch.nn.Parameter(torch.zeros(GROUPS))
            self.time = torch.nn.Parameter(torch.tensor(float(np.log(TIME))))

        def forward(self, part: int, texts: Sequence[str]) -> Any:
            features = query_features(texts)
            device = self.groups.device
            text, group = (torch.tensor(values, device=device) for values in (features.texts, features.groups))
            idf = torch.tensor(documents[part].weigh(features.keys), device=device)
            places, signs = embeddings(features.keys)
            flat = (text[:, None] * WIDTH + torch.tensor(places, device=device)).ravel()
            values = torch.tensor(signs, dtype=torch.float32, device=device) * (idf * self.groups.exp()[group])[:, None]
            words = torch.zeros(len(texts) * WIDTH, device=device).index_add(0, flat, values.ravel())
            words = words.view(-1, WIDTH)
            tagged = features.tagged
            at = np.minimum(np.searchsorted(keys, tagged), max(len(keys) - 1, 0))
            tuned = np.flatnonzero(keys[at] == tagged) if len(keys) else np.zeros(0, np.int64)
            rows = torch.tensor(at[tuned], device=device)
            words = words.index_add(0, text[torch.tensor(tuned, device=device)], self.offsets[rows])
            dates = torch.tensor(times(features.days), dtype=torch.float32, device=device) * self.time.exp()
            return torch.cat([torch.nn.functional.normalize(words, dim=1), dates], dim=1)

    return QueryModule()
