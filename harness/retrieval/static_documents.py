"""The static document tower: nothing in it is trained or stored, it follows from the corpus.

A feature is embedded as ``NONZERO`` signs at hashed places of ``WIDTH`` (count sketch; a sparse random projection keeps
dot products: Li, Hastie and Church, KDD 2006), so any vocabulary fits and equal features agree in every corpus. A
document is the sum of its features' embeddings, each weighted by idf(f) = ln(1 + N / df), made length 1. Beside it
stands the date in ``TIMES`` places: random Fourier features (Rahimi and Recht, NIPS 2007) of a mixture of Laplace
kernels from 10 days to 27 years wide, so that two dates' dot product, in [-1, 1], falls from 1 with their distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.static_features import Features, document_features, mixed

WIDTH = 512
NONZERO = 8
TIMES = 64
BLOCK = 8192  # documents at once
KEPT = 5  # corpora, as many as RuleQA has sets
SEED = 0x5EED  # of the document tower; another would make every trained query tower useless


_embedded: dict[str, Documents] = {}  # by the corpus's fingerprint, the oldest first


@dataclass(frozen=True, slots=True)
class Documents:
    """A corpus as the document tower sees it.

    Args:
        keys: uint64 (K,): the features of the corpus, ascending.
        idf: float32 (K,): their weights, above 0.
        vectors: float16 (N, WIDTH + TIMES).
    """

    keys: Any
    idf: Any
    vectors: Any

    def weigh(self, keys: Any) -> Any:
        """float32 (F,): the idf of each feature, 0 for one that is in no document."""
        if not len(self.keys):  # no document holds a word
            return np.zeros(len(keys), np.float32)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.idf[places], np.float32(0))


def embed(corpus: Corpus) -> Documents:
    """Run the document tower over a corpus; 64,000 documents of 10 words take about a second.

    The last few corpora are kept, since several query towers and evaluations in one process share them.
    """
    if corpus.fingerprint not in _embedded:
        while len(_embedded) >= KEPT:
            del _embedded[next(iter(_embedded))]
        _embedded[corpus.fingerprint] = _embed(corpus)
    return _embedded[corpus.fingerprint]


def _embed(corpus: Corpus) -> Documents:
    blocks = [document_features(corpus.texts[start : start + BLOCK]) for start in range(0, len(corpus), BLOCK)]
    keys, count = np.unique(np.concatenate([_once(block) for block in blocks]), return_counts=True)
    found = Documents(keys, np.log1p(len(corpus) / count).astype(np.float32), None)
    vectors = np.empty((len(corpus), WIDTH + TIMES), np.float16)
    for number, block in enumerate(blocks):
        words = normalised(bags(block, found.weigh(block.keys)))
        rows = slice(number * BLOCK, number * BLOCK + len(words))
        vectors[rows, :WIDTH], vectors[rows, WIDTH:] = words, times(block.days)
    return Documents(keys, found.idf, vectors)


def _once(features: Features) -> Any:
    """The keys of each text, every one once."""
    order = np.lexsort((features.keys, features.texts))
    keys, texts = features.keys[order], features.texts[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (texts[1:] != texts[:-1])
    return keys[new]


def bags(features: Features, weights: Any) -> Any:
    """float64 (texts, WIDTH): for each text the sum of its features' embeddings, each times its weight."""
    places, signs = embeddings(features.keys)
    flat = features.texts[:, None] * WIDTH + places
    size = len(features.days) * WIDTH
    values = signs * np.asarray(weights, np.float64)[:, None]
    return np.bincount(flat.ravel(), values.ravel(), minlength=size).reshape(-1, WIDTH)


def embeddings(keys: Any) -> tuple[Any, Any]:
    """Where the embedding of each feature is not 0, int64 (F, NONZERO), and what it is there, ± 1 / sqrt(NONZERO)."""
    span = WIDTH // NONZERO  # one place in each span, so no two fall together
    drawn = mixed(keys ^ np.uint64(SEED))[:, None] >> (8 * np.arange(NONZERO, dtype=np.uint64))
    places = (drawn % np.uint64(span)).astype(np.int64) + span * np.arange(NONZERO)
    signs = np.where(drawn & np.uint64(128), 1.0, -1.0) / np.sqrt(NONZERO)
    return places, signs


def times(days: Any) -> Any:
    """float64 (texts, TIMES): the embedding of each date, of length 1; 0 without a date."""
    draw = np.random.default_rng(SEED)
    widths = 10 ** draw.uniform(1, 4, TIMES // 2)  # days
    angles = np.asarray(days)[:, None] * (draw.standard_cauchy(TIMES // 2) / widths)
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(TIMES // 2)
    return np.nan_to_num(waves)


def normalised(vectors: Any) -> Any:
    """The rows made length 1; 0 stays 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
