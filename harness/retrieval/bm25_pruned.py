"""BM25's search by numpy: exact, with pruning (MaxScore; Turtle and Flood, 1995).

It sums float32 weights in float64. Such a sum is exact, so a score does not depend on the order of the additions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lm_eval_rag.harness.retrieval.bm25_index import Index, Postings

Ranking = list[tuple[int, float]]  # (row, score) pairs, best first
LOOKUP = 2  # postings that are added in the time of one look-up (measured; it changes speed alone)


def terms_of(index: Index, query: Sequence[int]) -> list[Postings]:
    """The different tokens of a query, the rarest first."""
    terms = [index.postings(number, count) for number, count in Counter(query).items()]
    return sorted(terms, key=lambda term: len(term.rows))


def pruned_search(terms: Sequence[Postings], k: int, scores: Any) -> Ranking:
    """The ``k`` best documents of a query, by numpy.

    It adds the postings of the rarest token first. It stops when no document without the tokens so far can be among
    the k best (MaxScore; Turtle and Flood, 1995), and looks up the other tokens for the candidates alone.

    Args:
        terms: From :func:`terms_of`.
        scores: float64 (documents,) of zeros; zeros again afterwards.
    """
    added, threshold = 0, 0.0  # postings added; the k-th best score is not below the threshold
    for place, term in enumerate(terms):
        rest = terms[place:]
        if not threshold and _tries(added, rest, k):
            candidates = np.unique(np.concatenate([other.rows for other in terms[:place]]))
            if len(candidates) >= k:
                totals = _totals(candidates, scores, rest)
                threshold = _kth(totals, k)
                if threshold > sum(other.highest for other in rest) * (1 + 1e-9):
                    scores[candidates] = 0
                    return _best(candidates, totals, k)
        np.add.at(scores, term.rows, term.count * term.weights)
        added += len(term.rows)
    rows = np.flatnonzero(scores >= threshold) if threshold else np.flatnonzero(scores)
    ranking = _best(rows, scores[rows], k)
    scores.fill(0)
    return ranking


def _tries(added: int, rest: Sequence[Postings], k: int) -> bool:
    """Whether looking up the candidates so far takes less time than adding the other tokens' postings."""
    return added >= k and LOOKUP * added * len(rest) < sum(len(term.rows) for term in rest)


def _kth(values: Any, k: int) -> float:
    return float(np.partition(values, -k)[-k])


def _totals(candidates: Any, scores: Any, rest: Sequence[Postings]) -> Any:
    """The candidates' scores with the other tokens counted too, each looked up among the token's rows."""
    totals = scores[candidates]
    for term in rest:
        places = np.minimum(np.searchsorted(term.rows, candidates), len(term.rows) - 1)
        totals += np.where(term.rows[places] == candidates, term.count * term.weights[places], 0)
    return totals


def _best(rows: Any, scores: Any, k: int) -> Ranking:
    """The ``k`` best of unordered candidates, ties by row."""
    if len(rows) > k:
        keep = scores >= _kth(scores, k)  # all that tie with the k-th, of which the lowest rows are taken
        rows, scores = rows[keep], scores[keep]
    order = np.lexsort((rows, -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))
