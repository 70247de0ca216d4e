"""Any retriever with its best documents scored anew by a cross-encoder (Nogueira and Cho, arXiv:1901.04085).

``retriever_rerank=cross-encoder/ms-marco-MiniLM-L6-v2,retriever_rerank_depth=50``
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lm_eval_rag.harness.checkpoints.locate import Checkpoint, checkpoint, load_errors
from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.data.corpus import Corpus

BATCH = 64


class Reranked:
    """A retriever, reranked.

    Args:
        base: The retriever.
        model: Folder or Hub id of a cross-encoder with one output: sentence-transformers, or any sequence classifier.
        depth: Documents that are scored anew, at least k.

    Raises:
        UserError: A package or the checkpoint is missing.
    """

    def __init__(self, base: Any, corpus: Corpus, model: str, depth: int = 50) -> None:
        need("Reranking", "dense", "torch", "transformers", "sentence_transformers")
        self._base, self._corpus, self._depth = base, corpus, depth
        self._checkpoint = checkpoint(model, "cross-encoder")
        told = versions("torch", "transformers", "sentence-transformers")
        self.fingerprint = f"rerank({self._checkpoint.identity}, depth={depth}, {told}) of [{base.fingerprint}]"

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, score of the cross-encoder) pairs, best first, ties by row.

        Raises:
            UserError: k is below 1, or the model cannot be loaded or has more than one output.
        """
        found = self._base.search(texts, max(at_least("k", k), self._depth))
        passages = self._corpus.texts
        pairs = {(text, passages[row]) for text, ranked in zip(texts, found, strict=True) for row, _ in ranked}
        scores = self._scores(sorted(pairs)) if pairs else {}  # each pair once: its place in a batch moves the last bit
        rescored = [
            [(row, scores[text, passages[row]]) for row, _ in ranked] for text, ranked in zip(texts, found, strict=True)
        ]
        return [sorted(ranked, key=lambda pair: (-pair[1], pair[0]))[:k] for ranked in rescored]

    def _scores(self, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
        scores = _loaded(self._checkpoint).predict(pairs, batch_size=BATCH, show_progress_bar=False)
        return dict(zip(pairs, scores.tolist(), strict=True))


@lru_cache(maxsize=1)
def _loaded(found: Checkpoint) -> Any:
    """The cross-encoder, which stays in memory: questions' own pages are thousands of small corpora."""
    from sentence_transformers import CrossEncoder

    folder = found.folder
    try:
        model = CrossEncoder(str(folder))
    except load_errors() as error:
        raise UserError(
            f"{folder} cannot be loaded as a cross-encoder ({type(error).__name__}: {error}). Give the folder or "
            "Hub id of a sequence classifier with one output."
        ) from error
    if model.config.num_labels != 1:
        raise UserError(f"{folder} has {model.config.num_labels} outputs: a reranker needs one, the relevance.")
    return model
