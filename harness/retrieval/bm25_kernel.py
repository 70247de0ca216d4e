"""BM25's search in plain loops, for numba: exact, with pruning (MaxScore; Turtle and Flood, 1995).

:mod:`lm_eval_rag.harness.retrieval.bm25_compiled` compiles these functions; they run in plain Python too, slowly. What
the tokens that a group of queries has in common add to each document is computed once. Of the other tokens the postings
of the rarest are added up first. Once no document without these tokens can be among the k best, the other tokens are
looked up for the documents so far, and documents that can no longer be among the k best are left out.

The arguments are those of :class:`lm_eval_rag.harness.retrieval.bm25_index.Index`, as the tuple ``postings`` (starts,
rows, weights, highest); ``totals``, float64 (documents,), of zeros: what the other tokens add; ``candidates``, int32
(documents,), whose first ``n`` are the rows with a total above 0; and, as the tuple ``shared``, what the common tokens
add: ``common``, float64 (documents,) or of length 0; ``touched``, int32: the rows where it is above 0; and ``listed``,
int32: the best rows by it, in order, ties by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SCAN = 12  # postings that are read in the time of one look-up (measured; it changes speed alone)


def search_all(
    postings: Any, documents: int, groups: Any, tokens: Any, n_listed: int, rows: Any, scores: Any, counts: Any
) -> None:
    """The best documents of each query, ties by row.

    Args:
        groups: Three int64 arrays. Group g has the queries ``first[g]`` to ``first[g + 1] - 1``; its common tokens are
            ``numbers[begins[g]:begins[g + 1]]``, where a token that stands twice counts twice.
        tokens: Two int64 arrays: the other tokens of query i are ``numbers[begins[i]:begins[i + 1]]``, rarest first.
        n_listed: How many of the best rows by the common tokens to list.
        rows: int32 (queries, k), filled with the rows, best first; ``scores``, float64, with their scores.
        counts: int64 (queries,), filled with how many were found.
    """
    first, of_groups, group_begins = groups
    numbers, begins = tokens
    totals, candidates = np.zeros(documents), np.empty(documents, np.int32)
    common, touched = np.zeros(documents), np.empty(documents, np.int32)
    listed, listed_scores = np.empty(n_listed, np.int32), np.empty(n_listed)
    for g in range(len(first) - 1):
        n = 0
        for token in of_groups[group_begins[g] : group_begins[g + 1]]:
            n = add(postings, token, common, touched, n)
        m = best(common, common[:0], touched, n, listed, listed_scores)
        shared = (common[: documents * (n > 0)], touched[:n], listed[:m])
        for i in range(first[g], first[g + 1]):
            query = numbers[begins[i] : begins[i + 1]]
            counts[i] = search_one(postings, query, shared, totals, candidates, rows[i], scores[i])
        keep(common, touched, n, np.inf)


def search_one(postings: Any, query: Any, shared: Any, totals: Any, candidates: Any, rows: Any, scores: Any) -> int:
    """One query; how many documents were found. The totals are zeros again afterwards."""
    common, _, listed = shared
    starts, highest, k = postings[0], postings[3], len(rows)
    left = np.zeros(len(query) + 1, np.int64)  # postings of the tokens from i on
    rest = np.zeros(len(query) + 1)  # the most that these tokens and the common ones add to a score
    rest[len(query)] = common[listed[0]] if len(listed) else 0.0
    for i in range(len(query) - 1, -1, -1):
        left[i] = left[i + 1] + starts[query[i] + 1] - starts[query[i]]
        rest[i] = rest[i + 1] + highest[query[i]]
    threshold = common[listed[k - 1]] if len(listed) >= k else 0.0  # the k-th best score is not below it
    n, used = 0, 0
    while used < len(query) and threshold <= rest[used]:
        n = add(postings, query[used], totals, candidates, n)
        used += 1
        if k <= n < left[used]:  # else to add the others takes less time
            best(totals, common[:0], candidates, n, rows, scores)
            threshold = max(threshold, lowest_score(postings, query[used:], common, rows, scores))
    for i in range(used, len(query)):
        n = keep(totals, candidates, n, threshold - rest[i])
        complete(postings, query[i], totals, candidates, n)
    found = best(totals, common, candidates, n, rows, scores)
    if len(listed) and threshold <= rest[len(query)]:
        found = best_of_common(shared, totals, rows, scores, found)
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


def lowest_score(postings: Any, query: Any, common: Any, best_rows: Any, best_scores: Any) -> float:
    """The lowest score of some candidates, when the tokens of the query and the common ones are counted too."""
    starts, rows, weights, _ = postings
    lowest = np.inf
    for i in range(len(best_rows)):
        score = best_scores[i] + (common[best_rows[i]] if len(common) else 0.0)
        for token in query:
            place = place_of(rows, best_rows[i], starts[token], starts[token + 1])
            if place < starts[token + 1] and rows[place] == best_rows[i]:
                score += weights[place]
        lowest = min(lowest, score)
    return lowest


def best(totals: Any, common: Any, candidates: Any, n: int, rows: Any, scores: Any) -> int:
    """Fill ``rows`` and ``scores`` with the best candidates, ties by row; how many there are."""
    found = 0
    for i in range(n):
        row = candidates[i]
        score = totals[row] + (common[row] if len(common) else 0.0)
        if found < len(rows) or score >= scores[found - 1]:
            found = insert(row, score, rows, scores, found)
    return found


def best_of_common(shared: Any, totals: Any, rows: Any, scores: Any, found: int) -> int:
    """Add the best rows that are no candidates to ``rows`` and ``scores``; how many these have then."""
    common, touched, listed = shared
    others = 0
    for row in listed:
        if totals[row] == 0:
            found = insert(row, common[row], rows, scores, found)
            others += 1
            if others == len(rows):
                return found
    last, lowest = listed[-1], common[listed[-1]]
    for row in touched[: len(touched) * (len(listed) < len(touched))]:  # rarely: most listed rows are candidates
        after = common[row] < lowest or (common[row] == lowest and row > last)
        if after and totals[row] == 0:
            found = insert(row, common[row], rows, scores, found)
    return found


def insert(row: int, score: float, rows: Any, scores: Any, found: int) -> int:
    """Insert a row among the best ``found``, which are in order, ties by row; how many there are then."""
    place = found
    while place and (scores[place - 1] < score or (scores[place - 1] == score and rows[place - 1] > row)):
        place -= 1
    if place == len(rows):
        return found
    found = min(found + 1, len(rows))
    for later in range(found - 1, place, -1):
        rows[later], scores[later] = rows[later - 1], scores[later - 1]
    rows[place], scores[place] = row, score
    return found
