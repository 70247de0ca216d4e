"""Retrieval scores. All are unscored without retrieval or gold answers; an empty list of documents scores 0.

On tasks with official scores, labels, "yes" and "no" are not looked for, since no document states them: a question with
no other gold answer is unscored, and otherwise only the other gold answers count. There ``evidence_recall@k``
(:mod:`lm_eval_rag.harness.scoring.evidence`) looks for the gold passages.

Recall here is the share of questions with a hit, as in RuleRAG (arXiv:2410.22353, section 4: whether the top k contain
the answer). ``recall@k`` requires a document that states the answer: as its object if the document is a fact, as whole
words if it is free text. ``recall@k_contains`` is the published measure: the answer anywhere in the text, even inside
another name. It is higher (by 8 points on ICEWS14 with BM25).

recall@k is scored only for k up to the depth of the run (:func:`lm_eval_rag.harness.core.record.depth`), so that one
run scores the same questions at each k. A shorter list (duplicates, a small corpus, a method that stopped early or
truncated its list) is scored as it is. The list is the merged one, so the union over rules is truncated to k documents:
an equal budget. The recall of the whole union is ``pooled_recall_contains``; read it together with
``pooled_documents``.
"""

from __future__ import annotations

from lm_eval_rag.harness.scoring.case import Case

CUTOFFS = (1, 2, 5, 10, 50)


def recall(case: Case, k: int) -> float | None:
    """1 if one of the first ``k`` documents states a gold answer, else 0; unscored if k is above the run's depth."""
    return _within(case.answer_rank, k) if _scored(case) and k <= case.depth else None


def recall_contains(case: Case, k: int) -> float | None:
    """1 if one of the first ``k`` documents contains a gold answer, else 0; unscored if k is above the run's depth."""
    return _within(case.mention_rank, k) if _scored(case) and k <= case.depth else None


def pooled_recall_contains(case: Case) -> float | None:
    """1 if any document of the whole union contains a gold answer, else 0."""
    return float(case.mention_rank is not None) if _scored(case) else None


def pooled_documents(case: Case) -> float | None:
    """Number of documents in the whole union: the cost of the pooled recall."""
    return None if case.documents is None else float(len(case.documents))


def mrr(case: Case) -> float | None:
    """1 / rank of the first document in the whole merged list that states a gold answer; 0 if none does."""
    if not _scored(case):
        return None
    return 1 / case.answer_rank if case.answer_rank else 0.0


def _scored(case: Case) -> bool:
    return case.documents is not None and bool(case.sought)


def _within(rank: int | None, k: int) -> float:
    return float(rank is not None and rank <= k)
