"""``static``: two towers of token embeddings, numpy alone at inference.

    score(q, d) = q . d,  both bags of embeddings of hashed words, pairs of words, beginnings, and the date

:mod:`static_features` says what is read in a text, :mod:`static_documents` how a document is embedded (nothing is
trained there, as in RuleRAG, arXiv:2410.22353, section 3.2, where the document encoder is frozen), and
:mod:`static_queries` what training changes. ``adapter`` is an embedded query tower (``rgft``, ``ssft``), ``base`` for
none, or a folder or Hub id of one made by ``lm-eval-rag train retriever --encoder static``. The embedded ones' card is
``static_towers/README.md``.
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
QUERIES = 1024  # at once: with BLOCK it bounds the memory, 32 MB of scores
SLACK = 1e-4  # more than float32 can be wrong by in a dot product of these vectors


class Static:
    """Searches one corpus with a query tower; exact, ties by row."""

    def __init__(self, corpus: Corpus, tower: QueryTower) -> None:
        digest = hashlib.sha256()
        for part in (tower.keys, tower.offsets, tower.scales, tower.groups, np.float64(tower.time)):
            digest.update(part.tobytes())
        self.fingerprint = f"static(format={FORMAT}, tower={digest.hexdigest()[:16]}) over {corpus.fingerprint}"
        self.documents, self.tower = embed(corpus), tower

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text the ``k`` best (row, score) pairs, best first, ties by row; of all documents if they are fewer.

        Scores are in about [-1 - time, 1 + time]. Results do not depend on the batch.

        Raises:
            UserError: k is below 1.
        """
        at_least("k", k)
        found: list[list[tuple[int, float]]] = []
        for start in range(0, len(texts), QUERIES):
            found += self.nearest(self.tower.encode(list(texts[start : start + QUERIES]), self.documents), k)
        return found

    def nearest(self, queries: Any, k: int) -> list[list[tuple[int, float]]]:
        """The ``k`` best documents of each row of float64 (queries, WIDTH + TIMES), as :meth:`search` gives them.

        Blocks of documents are scored in float32; what may be among the k best is scored anew in float64, row by row,
        since a matrix product's rounding depends on the shape of the batch.
        """
        vectors = self.documents.vectors
        quick = queries.astype(np.float32)
        rows: list[Any] = [np.zeros(0, np.int64)] * len(queries)
        scores: list[Any] = [np.zeros(0, np.float32)] * len(queries)
        part = np.empty((min(BLOCK, len(vectors)), vectors.shape[1]), np.float32)  # written over: new memory costs more
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
        return [self._ranked(query, found, k) for query, found in zip(queries, rows, strict=True)]

    def _ranked(self, query: Any, rows: Any, k: int) -> list[tuple[int, float]]:
        exact = (self.documents.vectors[rows].astype(np.float64) * query).sum(axis=1)
        best = np.lexsort((rows, -exact))[:k]
        return list(zip(rows[best].tolist(), exact[best].tolist(), strict=True))


def _kth(scores: Any, k: int) -> float:
    return float(np.partition(scores, -k)[-k]) if len(scores) >= k else -np.inf


def static(corpus: Corpus, *, adapter: str = "rgft") -> Static:
    """The retriever by its query tower: ``base``, ``rgft``, ``ssft``, or a folder or Hub id.

    Raises:
        UserError: No such tower, or one that is damaged or of another format.
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
