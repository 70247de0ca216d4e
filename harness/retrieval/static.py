"""``static``: two encoders ("towers") of static token embeddings; only numpy is needed to search.

    score(q, d) = q . d,  each the sum of embeddings of hashed words, pairs of words, beginnings, and the date

The embedding of documents is not trained, as in RuleRAG (arXiv:2410.22353, section 3.2), where the document encoder is
frozen; a query tower is. ``adapter`` names it: one that is in the package (``rgft``, ``ssft``), ``base`` (untrained),
or a folder or Hub id that ``lm-eval-rag train retriever --encoder static`` wrote. The towers in the package are
described in ``static_towers/README.md``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.static_documents import BLOCK, embed
from lm_eval_rag.harness.retrieval.static_queries import FORMAT, WEIGHTS, QueryTower, base, load

EMBEDDED = ("rgft", "ssft")
QUERIES = 1024  # at once; with BLOCK this bounds the scores in memory to 32 MB
SLACK = 1e-4  # above the rounding error of a float32 dot product of these vectors


class Static:
    """Searches one corpus with a query tower; exact, ties by row."""

    def __init__(self, corpus: Corpus, tower: QueryTower) -> None:
        digest = hashlib.sha256()
        for part in (tower.keys, tower.offsets, tower.scales, tower.groups, np.float64(tower.time)):
            digest.update(part.tobytes())
        self.fingerprint = f"static(format={FORMAT}, tower={digest.hexdigest()[:16]}) over {corpus.fingerprint}"
        self.documents, self.tower = embed(corpus), tower

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text the ``k`` best (row, score) pairs, best first, ties by row; all documents if there are fewer.

        Scores are in about [-1 - time, 1 + time]. Results do not depend on the batch.

        Raises:
            UserError: k is below 1.
        """
        at_least("k", k)
        rankings: list[list[tuple[int, float]]] = []
        for start in range(0, len(texts), QUERIES):
            rankings += self.nearest(self.tower.encode(list(texts[start : start + QUERIES]), self.documents), k)
        return rankings

    def nearest(self, queries: Any, k: int) -> list[list[tuple[int, float]]]:
        """As :meth:`search`, for query vectors: float64 (queries, WIDTH + TIMES).

        Blocks of documents are scored in float32. Documents that may be among the k best are scored again in float64,
        one by one, since the rounding of a matrix product depends on the shape of the batch.
        """
        vectors = self.documents.vectors
        quick = queries.astype(np.float32)
        rows: list[Any] = [np.zeros(0, np.int64)] * len(queries)
        scores: list[Any] = [np.zeros(0, np.float32)] * len(queries)
        part = np.empty((min(BLOCK, len(vectors)), vectors.shape[1]), np.float32)  # reused, since new memory is slow
        products = np.empty((len(queries), len(part)), np.float32)
        least = np.full(len(queries), -np.inf, np.float32)
        for start in range(0, len(vectors), BLOCK):
            size = min(BLOCK, len(vectors) - start)
            part[:size] = vectors[start : start + size]
            block = np.matmul(quick, part[:size].T, out=products[:, :size])
            for query in np.flatnonzero(block.max(axis=1) >= least - SLACK):
                new = np.flatnonzero(block[query] >= least[query] - SLACK)
                rows[query] = np.concatenate([rows[query], new + start])
                scores[query] = np.concatenate([scores[query], block[query, new]])
                least[query] = _kth(scores[query], k)
                keep = scores[query] >= least[query] - SLACK
                rows[query], scores[query] = rows[query][keep], scores[query][keep]
        return [self._ranked(query, candidates, k) for query, candidates in zip(queries, rows, strict=True)]

    def _ranked(self, query: Any, rows: Any, k: int) -> list[tuple[int, float]]:
        exact = (self.documents.vectors[rows].astype(np.float64) * query).sum(axis=1)
        best = np.lexsort((rows, -exact))[:k]
        return list(zip(rows[best].tolist(), exact[best].tolist(), strict=True))


def _kth(scores: Any, k: int) -> float:
    return float(np.partition(scores, -k)[-k]) if len(scores) >= k else -np.inf


def static(corpus: Corpus, *, adapter: str = "rgft") -> Static:
    """The static retriever with a query tower.

    Args:
        adapter: The query tower: ``base`` (untrained), ``rgft`` or ``ssft`` (embedded), or a folder or Hub id.

    Raises:
        UserError: The tower does not exist, is damaged, or has another format.
    """
    return Static(corpus, find_tower(adapter))


def find_tower(adapter: str) -> QueryTower:
    """The query tower of that name, folder or Hub id."""
    if adapter == "base":
        return base()
    if adapter in EMBEDDED:
        return load(Path(str(files("lm_eval_rag.harness.retrieval") / "static_towers" / adapter / WEIGHTS)))
    from lm_eval_rag.harness.checkpoints.locate import checkpoint

    hint = f"query tower (embedded: base, {', '.join(EMBEDDED)})"
    return load(checkpoint(adapter, hint).folder / WEIGHTS)
