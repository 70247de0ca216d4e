"""Search by name: BM25 over the words of names, as CRAG's mock API does it, but sound on small graphs too.

BM25 as in rank_bm25's Okapi class, which the server uses for three of the four domains with a name search: k1 = 1.5,
b = 0.75, idf = ln((N - n + 0.5) / (n + 0.5)), and where that is not positive a quarter of the mean idf. Departures:

- The mean is taken over the positive idfs, and ln 2 stands for it where there is none; so every shared word scores
  above 0. The published idf of a word that half of the names hold is 0, which hides them; on small graphs many are.
- Music is searched in the same way: the published search drops every word with an idf below 4, which leaves nothing of
  a small graph.
- Equal scores are ordered by the normal form of the name, then by its place in the file; the server's order of these
  is that of an unstable sort.
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
    """Lower case, no ASCII punctuation, single spaces: how the API compares names."""
    return " ".join(name.lower().translate(_PUNCTUATION).split())


class NameIndex:
    """Names by the words they share with a query.

    Args:
        names: In the file's order; names of one normal form are one document, found together.
    """

    def __init__(self, names: Iterable[str]) -> None:
        rows = defaultdict(list)
        for row, name in enumerate(names):
            rows[normal(name)].append(row)
        self._forms = sorted(rows)
        self._rows = [rows[form] for form in self._forms]

    def search(self, query: str, k: int = TOP) -> list[int]:
        """Rows of at most ``k`` names, best first; [] when no word is shared."""
        scores = self.scores(query)
        found: list[int] = []
        best = np.flatnonzero(scores)
        for form in best[np.lexsort((best, -scores[best]))][:k].tolist():
            found += self._rows[form]
        return found[:k]

    def scores(self, query: str) -> np.ndarray:
        """The score of every normal form, in alphabetical order; a word counts as often as the query holds it."""
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
        """Words by number; for each word where its part begins; documents and counts of all parts."""
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
