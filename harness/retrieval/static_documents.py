"""The static document tower. Nothing in it is trained or stored; it is computed from the corpus.

The embedding of a feature has ``NONZERO`` signs at hashed places of ``WIDTH`` (count sketch; a sparse random projection
preserves dot products: Li, Hastie and Church, KDD 2006). So there is no vocabulary, and a feature has the same
embedding in every corpus. A document is the sum of its features' embeddings, each weighted by idf(f) = ln(1 + N / df),
scaled to length 1. ``TIMES`` further places hold the date: random Fourier features (Rahimi and Recht, NIPS 2007) of a
mixture of Laplace kernels from 10 days to 27 years wide. The dot product of two dates is 1 for equal dates and falls
with their distance, in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.static_features import Features, document_features, mixed

WIDTH = 512
NONZERO = 8
TIMES = 64
BLOCK = 8192  # documents at once
CORPORA = 5  # that stay in memory, as many as RuleQA has sets
SEED = 0x5EED  # of the document tower; every trained query tower depends on it


_embedded: dict[str, Documents] = {}  # by fingerprint of the corpus, the oldest first


@dataclass(frozen=True, slots=True)
class Documents:
    """A corpus, embedded by the document tower.

    Args:
        keys: uint64 (K,): the features that occur in the corpus, ascending.
        idf: float32 (K,): their weights, above 0.
        vectors: float16 (N, WIDTH + TIMES).
    """

    keys: Any
    idf: Any
    vectors: Any

    def weigh(self, keys: Any) -> Any:
        """float32 (F,): the idf of each feature, 0 for a feature that is in no document."""
        if not len(self.keys):  # no document contains a word
            return np.zeros(len(keys), np.float32)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.idf[places], np.float32(0))


def embed(corpus: Corpus) -> Documents:
    """Embed a corpus by the document tower; 64,000 documents of 10 words take about a second.

    The last ``CORPORA`` corpora stay in memory, since query towers and evaluations of one process share them.
    """
    if corpus.fingerprint not in _embedded:
        while len(_embedded) >= CORPORA:
            del _embedded[next(iter(_embedded))]
        _embedded[corpus.fingerprint] = _embed(corpus)
    return _embedded[corpus.fingerprint]


def _embed(corpus: Corpus) -> Documents:
    with Meter("embeddings of documents", 2 * len(corpus), "texts") as meter:  # each twice: features, then vectors
        return _embedded_with(meter, corpus)


def _embedded_with(meter: Meter, corpus: Corpus) -> Documents:
    blocks = []
    for start in range(0, len(corpus), BLOCK):
        blocks.append(document_features(corpus.texts[start : start + BLOCK]))
        meter.update(len(blocks[-1].days))
    keys, count = np.unique(np.concatenate([_once(block) for block in blocks]), return_counts=True)
    vectors = np.empty((len(corpus), WIDTH + TIMES), np.float16)
    documents = Documents(keys, np.log1p(len(corpus) / count).astype(np.float32), vectors)
    for number, block in enumerate(blocks):
        words = normalised(bags(block, documents.weigh(block.keys)))
        rows = slice(number * BLOCK, number * BLOCK + len(words))
        vectors[rows, :WIDTH], vectors[rows, WIDTH:] = words, times(block.days)
        meter.update(len(words))
    return documents


def _once(features: Features) -> Any:
    """The different keys of each text."""
    order = np.lexsort((features.keys, features.texts))
    keys, texts = features.keys[order], features.texts[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (texts[1:] != texts[:-1])
    return keys[new]


def bags(features: Features, weights: Any) -> Any:
    """float64 (texts, WIDTH): for each text the weighted sum of its features' embeddings."""
    places, signs = embeddings(features.keys)
    flat = features.texts[:, None] * WIDTH + places
    size = len(features.days) * WIDTH
    values = signs * np.asarray(weights, np.float64)[:, None]
    return np.bincount(flat.ravel(), values.ravel(), minlength=size).reshape(-1, WIDTH)


def embeddings(keys: Any) -> tuple[Any, Any]:
    """The places where each feature's embedding is not 0, int64 (F, NONZERO), and the values, ± 1 / sqrt(NONZERO)."""
    span = WIDTH // NONZERO  # one place in each span, so that all places differ
    drawn = mixed(keys ^ np.uint64(SEED))[:, None] >> (8 * np.arange(NONZERO, dtype=np.uint64))
    places = (drawn % np.uint64(span)).astype(np.int64) + span * np.arange(NONZERO)
    signs = np.where(drawn & np.uint64(128), 1.0, -1.0) / np.sqrt(NONZERO)
    return places, signs


def times(days: Any) -> Any:
    """float64 (texts, TIMES): the embedding of each date, of length 1; zeros without a date."""
    draw = np.random.default_rng(SEED)
    widths = 10 ** draw.uniform(1, 4, TIMES // 2)  # days
    angles = np.asarray(days)[:, None] * (draw.standard_cauchy(TIMES // 2) / widths)
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(TIMES // 2)
    return np.nan_to_num(waves)


def normalised(vectors: Any) -> Any:
    """The rows scaled to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
