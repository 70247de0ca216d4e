"""Reranking: a cross-encoder scores the best documents of any retriever (Nogueira and Cho, arXiv:1901.04085).

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
    """A retriever whose best documents are reranked.

    Args:
        base: The retriever.
        model: Folder or Hub id of a cross-encoder with one output, of sentence-transformers or any sequence classifier.
        depth: How many documents are reranked; k if that is more.

    Raises:
        UserError: A package or the checkpoint is missing.
    """

    def __init__(self, base: Any, corpus: Corpus, model: str, depth: int = 50) -> None:
        need("Reranking", "dense", "torch", "transformers", "sentence_transformers")
        self._base, self._corpus, self._depth = base, corpus, depth
        self._checkpoint = checkpoint(model, "cross-encoder")
        packages = versions("torch", "transformers", "sentence-transformers")
        self.fingerprint = f"rerank({self._checkpoint.identity}, depth={depth}, {packages}) of [{base.fingerprint}]"

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, score of the cross-encoder) pairs, best first, ties by row.

        Raises:
            UserError: k is below 1, or the model cannot be loaded or has more than one output.
        """
        rankings = self._base.search(texts, max(at_least("k", k), self._depth))
        documents = self._corpus.texts
        rows = [[row for row, _ in ranking] for ranking in rankings]
        pairs = {(text, documents[row]) for text, of_text in zip(texts, rows, strict=True) for row in of_text}
        # Each pair is scored once, since the last bit of a score depends on the pair's place in the batch.
        scores = self._scores(sorted(pairs)) if pairs else {}
        reranked = [
            [(row, scores[text, documents[row]]) for row in of_text] for text, of_text in zip(texts, rows, strict=True)
        ]
        return [sorted(ranking, key=lambda pair: (-pair[1], pair[0]))[:k] for ranking in reranked]

    def source_of(self, text: str) -> str:
        """Who finds the documents of a text, if the retriever has a fallback; else ""."""
        source = getattr(self._base, "source_of", None)
        return str(source(text)) if source else ""

    def _scores(self, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
        scores = _loaded(self._checkpoint).predict(pairs, batch_size=BATCH, show_progress_bar=False)
        return dict(zip(pairs, scores.tolist(), strict=True))


@lru_cache(maxsize=1)
def _loaded(source: Checkpoint) -> Any:
    """The cross-encoder. It stays in memory, since the pages of each question are a small corpus of their own."""
    from sentence_transformers import CrossEncoder

    folder = source.folder
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
