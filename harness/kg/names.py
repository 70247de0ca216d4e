"""Search by name: BM25 over the words of names, as in CRAG's mock API, but correct on small graphs too.

BM25 as in rank_bm25's Okapi class, which the server uses for three of the four domains with a name search: k1 = 1.5,
b = 0.75, idf = ln((N - n + 0.5) / (n + 0.5)), or a quarter of the mean idf if that is not positive. Departures:

- The mean is over the positive idfs only, and is ln 2 if there are none, so that every shared word scores above 0. The
  published idf of a word in half of the names is 0, which hides these names; on small graphs there are many.
- Music is searched in the same way. The published search drops every word with an idf below 4, which leaves nothing on
  a small graph.
- Equal scores are ordered by the normal form of the name, then by row; the server's order is that of an unstable sort.
"""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

import numpy as np

K1, B, EPSILON = 1.5, 0.75, 0.25
TOP = 10
_PUNCTUATION = str.maketrans("_", " ", string.punctuation.replace("_", ""))


def normal(name: str) -> str:
    """Lower case, no ASCII punctuation, single spaces: the form in which the API compares names."""
    return " ".join(name.lower().translate(_PUNCTUATION).split())


class NameIndex:
    """Finds names by the words they share with a query.

    Args:
        names: In the file's order; names with the same normal form are one document.
    """

    def __init__(self, names: Iterable[str]) -> None:
        rows = defaultdict(list)
        for row, name in enumerate(names):
            rows[normal(name)].append(row)
        self._forms = sorted(rows)
        self._rows = [rows[form] for form in self._forms]

    def search(self, query: str, k: int = TOP) -> list[int]:
        """Rows of at most ``k`` names, best first; [] if no word is shared."""
        scores = self.scores(query)
        rows: list[int] = []
        best = np.flatnonzero(scores)
        for form in best[np.lexsort((best, -scores[best]))][:k].tolist():
            rows += self._rows[form]
        return rows[:k]

    def scores(self, query: str) -> np.ndarray:
        """The score of every normal form, in alphabetical order; a repeated word of the query counts repeatedly."""
        words, starts, documents, counts = self._postings
        norm = K1 * (1 - B + B * self._lengths / max(self._lengths.mean(), 1e-9)) if len(self._lengths) else None
        total = np.zeros(len(self._forms))
        for word in normal(query).split():
            if norm is None or word not in words:
                continue
            part = slice(starts[words[word]], starts[words[word] + 1])
            rows, count = documents[part], counts[part]
            total[rows] += self._idf[words[word]] * count * (K1 + 1) / (count + norm[rows])
        return total

    @cached_property
    def _lengths(self) -> np.ndarray:
        return np.array([len(form.split()) for form in self._forms], dtype=np.float64)

    @cached_property
    def _postings(self) -> tuple[dict[str, int], np.ndarray, np.ndarray, np.ndarray]:
        """The number of each word, where each word's postings begin, and documents and counts of all postings."""
        words: dict[str, int] = {}
        size = max(len(self._forms), 1)
        coded = (
            words.setdefault(word, len(words)) * size + row
            for row, form in enumerate(self._forms)
            for word in form.split()
        )
        unique, counts = np.unique(np.fromiter(coded, dtype=np.int64), return_counts=True)
        numbers, documents = np.divmod(unique, size)
        starts = np.searchsorted(numbers, np.arange(len(words) + 1))
        return words, starts, documents, counts

    @cached_property
    def _idf(self) -> np.ndarray:
        n = np.diff(self._postings[1]).astype(np.float64)
        idf = np.log((len(self._forms) - n + 0.5) / (n + 0.5))
        positive = idf[idf > 0]
        floor = EPSILON * (positive.mean() if len(positive) else np.log(2.0))
        return np.where(idf > 0, idf, floor)
