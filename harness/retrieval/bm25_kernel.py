"""BM25's search in plain loops, for numba: exact, with pruning (MaxScore; Turtle and Flood, 1995).

:mod:`lm_eval_rag.harness.retrieval.bm25_compiled` compiles these functions; they run in plain Python too, slowly. The
postings of the rarest tokens are added up first. Once no document without these tokens can be among the k best, the
other tokens are looked up for the documents so far, and documents that can no longer be among the k best are left out.

The arguments are those of :class:`lm_eval_rag.harness.retrieval.bm25_index.Index`, as the tuple ``postings`` (starts,
rows, weights, highest); ``totals``, float64 (documents,), of zeros; and ``candidates``, int32 (documents,), whose first
``n`` are the rows with a total above 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SCAN = 12  # postings that are read in the time of one look-up (measured; it changes speed alone)


def search_all(
    postings: Any, tokens: Any, begins: Any, totals: Any, candidates: Any, rows: Any, scores: Any, counts: Any
) -> None:
    """The best documents of each query, ties by row.

    Args:
        tokens: int64: the numbers of all queries' tokens; those of query i are ``tokens[begins[i]:begins[i + 1]]``, the
            rarest first. A token that stands twice counts twice.
        rows: int32 (queries, k), filled with the rows, best first; ``scores``, float64, with their scores.
        counts: int64 (queries,), filled with how many were found.
    """
    for i in range(len(counts)):
        query = tokens[begins[i] : begins[i + 1]]
        counts[i] = search_one(postings, query, totals, candidates, rows[i], scores[i])


def search_one(postings: Any, query: Any, totals: Any, candidates: Any, rows: Any, scores: Any) -> int:
    """One query; how many documents were found. The totals are zeros again afterwards."""
    highest = postings[3]
    rest = np.zeros(len(query) + 1)  # the most that the tokens from i on add to a score
    for i in range(len(query) - 1, -1, -1):
        rest[i] = rest[i + 1] + highest[query[i]]
    n, used, threshold = 0, 0, 0.0  # the k-th best score is not below the threshold
    while used < len(query) and threshold <= rest[used]:
        n = add(postings, query[used], totals, candidates, n)
        used += 1
        if n >= len(rows) and used < len(query):
            best(totals, candidates, n, rows, scores)
            threshold = max(threshold, lowest_score(postings, query[used:], rows, scores))
    for i in range(used, len(query)):
        n = keep(totals, candidates, n, threshold - rest[i])
        complete(postings, query[i], totals, candidates, n)
    found = best(totals, candidates, n, rows, scores)
    keep(totals, candidates, n, np.inf)
    return found


def add(postings: Any, token: int, totals: Any, candidates: Any, n: int) -> int:
    """Add a token's postings to the totals; how many candidates there are then."""
    starts, rows, weights, _ = postings
    for place in range(starts[token], starts[token + 1]):
        row, weight = rows[place], weights[place]
        if weight > 0:  # else a row would be a candidate twice
            if totals[row] == 0:
                candidates[n] = row
                n += 1
            totals[row] += weight
    return n


def keep(totals: Any, candidates: Any, n: int, least: float) -> int:
    """Leave out candidates below a total, which becomes 0; how many remain."""
    kept = 0
    for i in range(n):
        row = candidates[i]
        if totals[row] >= least:
            candidates[kept] = row
            kept += 1
        else:
            totals[row] = 0
    return kept


def complete(postings: Any, token: int, totals: Any, candidates: Any, n: int) -> None:
    """Add a token to the totals of the candidates alone: by looking each up, or by reading all its postings."""
    starts, rows, weights, _ = postings
    begin, end = starts[token], starts[token + 1]
    if end - begin == len(totals):  # a token of every document: the posting of row r is at place r
        for i in range(n):
            totals[candidates[i]] += weights[begin + candidates[i]]
        return
    if n * SCAN > end - begin:
        for place in range(begin, end):
            if totals[rows[place]] > 0:
                totals[rows[place]] += weights[place]
        return
    place = begin
    for i in range(n):
        row = candidates[i]
        if i and row < candidates[i - 1]:  # candidates are ascending within each token that brought them
            place = begin
        place = place_of(rows, row, place, end)
        if place < end and rows[place] == row:
            totals[row] += weights[place]


def place_of(rows: Any, row: int, begin: int, end: int) -> int:
    """The first place in ``rows[begin:end]`` that is not below a row: in growing steps, then by halves."""
    step = 1
    while begin + step < end and rows[begin + step] < row:
        begin += step
        step *= 2
    end = min(begin + step + 1, end)
    while begin < end:
        middle = (begin + end) // 2
        if rows[middle] < row:
            begin = middle + 1
        else:
            end = middle
    return begin


def lowest_score(postings: Any, query: Any, best_rows: Any, best_scores: Any) -> float:
    """The lowest score of some candidates, when the other tokens are counted too."""
    starts, rows, weights, _ = postings
    lowest = np.inf
    for i in range(len(best_rows)):
        score = best_scores[i]
        for token in query:
            place = place_of(rows, best_rows[i], starts[token], starts[token + 1])
            if place < starts[token + 1] and rows[place] == best_rows[i]:
                score += weights[place]
        lowest = min(lowest, score)
    return lowest


def best(totals: Any, candidates: Any, n: int, rows: Any, scores: Any) -> int:
    """Fill ``rows`` and ``scores`` with the best candidates, ties by row; how many there are."""
    found = 0
    for i in range(n):
        row, score = candidates[i], totals[candidates[i]]
        place = found
        while place and (scores[place - 1] < score or (scores[place - 1] == score and rows[place - 1] > row)):
            place -= 1
        if place == len(rows):
            continue
        found = min(found + 1, len(rows))
        for later in range(found - 1, place, -1):
            rows[later], scores[later] = rows[later - 1], scores[later - 1]
        rows[place], scores[place] = row, score
    return found
