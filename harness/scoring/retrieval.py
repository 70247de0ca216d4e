"""Retrieval scores. All are unscored without retrieval or gold answers; an empty list of documents is a miss.

Recall here is the share of questions with a hit, as in RuleRAG (arXiv:2410.22353, section 4: whether the answer is
contained in the top k). ``recall@k`` wants a document that states the answer: as its object when it is a fact, as whole
words when it is free text. ``recall@k_contains`` is the published measure: the answer anywhere in the text, even inside
another name, which flatters (8 points on ICEWS14 with BM25).

A list is scored at k only up to the run's depth: the most documents that a list of the run stands for
(:func:`lm_eval_rag.harness.core.record.depth`), so that one run scores the same questions at each k. A list that is
shorter (duplicates, a small corpus, a method that stopped early or cut it) is scored as it is. The list is the merged
one, so a union over rules is cut to k: an equal budget. What the longer union holds is ``pooled_recall_contains``, to
be read with ``pooled_documents``.
"""

from __future__ import annotations

from lm_eval_rag.harness.scoring.case import Case

CUTOFFS = (1, 2, 5, 10, 50)


def recall(case: Case, k: int) -> float | None:
    """1 if one of the first ``k`` documents states a gold answer, else 0; unscored beyond the depth of the run."""
    return _within(case.answer_rank, k) if _scored(case) and k <= case.depth else None


def recall_contains(case: Case, k: int) -> float | None:
    """1 if a gold answer stands anywhere in the first ``k`` documents, else 0; unscored beyond the depth of the run."""
    return _within(case.mention_rank, k) if _scored(case) and k <= case.depth else None


def pooled_recall_contains(case: Case) -> float | None:
    """1 if a gold answer stands anywhere in any document of the whole union, else 0."""
    return float(case.mention_rank is not None) if _scored(case) else None


def pooled_documents(case: Case) -> float | None:
    """Number of documents in the whole union: the price of the pooled recall."""
    return None if case.documents is None else float(len(case.documents))


def mrr(case: Case) -> float | None:
    """1 / rank of the first document that states a gold answer, over the whole merged list; 0 if none does."""
    if not _scored(case):
        return None
    return 1 / case.answer_rank if case.answer_rank else 0.0


def _scored(case: Case) -> bool:
    return case.documents is not None and bool(case.golds)


def _within(rank: int | None, k: int) -> float:
    return float(rank is not None and rank <= k)
