"""Search by name: BM25 over the words of names, as the real server does on its files, smoothly on your own.

Official files (:mod:`lm_eval_rag.harness.kg.official`) are searched as facebookresearch/CRAG's mock API does, equal
scores in its order included. It has two scorers:

- Finance, movie and open: Okapi BM25 as in the package rank_bm25 (k1 = 1.5, b = 0.75, idf = ln((N - n + 0.5) / (n +
  0.5)); a negative idf becomes a quarter of the mean). numpy's argsort orders the scores, and the order is reversed.
  This sort is not stable: equal scores have the order of a server on the same kind of machine with the same numpy.
- Music: the same, but words with an idf of 4 or less (in more than 1.8 % of the names) are dropped. "I can feel IT"
  thus finds every name of four words with "can" and "feel" equally well; equal scores are in alphabetical order.

Neither is right on a small graph: a word in half of the names has an idf of 0 there, which hides these names, and the
cutoff leaves no word at all. Files of your own are therefore searched by :data:`SMOOTH`: no cutoff, an idf of at least
a quarter of the mean over the positive ones (ln 2 if there are none), equal scores in alphabetical order.
"""

from __future__ import annotations

import math
import string
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lm_eval_rag.harness.kg.records import Records

K1, B, EPSILON = 1.5, 0.75, 0.25
CUTOFF = 4.0  # of the music search
TOP = 10
_PUNCTUATION = str.maketrans("_", " ", string.punctuation.replace("_", ""))


def normal(name: str) -> str:
    """Lower case, no ASCII punctuation, single spaces: the form in which the API compares names."""
    return " ".join(name.lower().translate(_PUNCTUATION).split())


@dataclass(frozen=True, slots=True)
class Ranking:
    """How names are ranked.

    Args:
        distinct: Whether names with the same normal form are one document, and documents are in alphabetical order;
            otherwise each name is one, in the file's order.
        weights: Turns the raw idf of all words into their weights; words of weight 0 are not searched.
        order: Documents best first, from their scores and from the place of the first word of the query that each has.
    """

    distinct: bool
    weights: Callable[[np.ndarray], np.ndarray]
    order: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _smooth(idf: np.ndarray) -> np.ndarray:
    positive = idf[idf > 0]
    return np.where(idf > 0, idf, EPSILON * (positive.mean() if len(positive) else np.log(2.0)))


def _okapi(idf: np.ndarray) -> np.ndarray:
    """The mean is over all words, and is added up one by one, so that it has the server's last digit."""
    mean = np.cumsum(idf)[-1] / len(idf) if len(idf) else 0.0
    return np.where(idf < 0, EPSILON * mean, idf)


def _cut(idf: np.ndarray) -> np.ndarray:
    return np.where(idf > CUTOFF, idf, 0.0)


def _alphabetical(scores: np.ndarray, first: np.ndarray) -> np.ndarray:
    best = np.flatnonzero(scores)
    return best[np.argsort(-scores[best], kind="stable")]


def _reversed(scores: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.argsort(scores)[::-1]  # of all scores: which of equal ones comes first depends on the others too


def _by_first_word(scores: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The server collects documents word by word of the query, and keeps that order among equal scores."""
    best = np.flatnonzero(scores)
    return best[np.lexsort((first[best], -scores[best]))]


SMOOTH = Ranking(True, _smooth, _alphabetical)
SERVER = {
    "finance": Ranking(False, _okapi, _reversed),
    "movie": Ranking(False, _okapi, _reversed),
    "open": Ranking(True, _okapi, _reversed),
    "music": Ranking(True, _cut, _by_first_word),
}


def ranking_of(domain: str, *files: Records) -> Ranking:
    """The server's if all files are official, else the smooth one."""
    return SERVER[domain] if all(file.official for file in files) else SMOOTH


class NameIndex:
    """Finds names by the words they share with a query.

    Args:
        names: In the file's order.
        ranking: How they are ranked.
    """

    def __init__(self, names: Iterable[str], ranking: Ranking = SMOOTH) -> None:
        forms = [normal(name) for name in names]
        self._rows = defaultdict(list)
        for row, form in enumerate(forms):
            self._rows[form].append(row)
        self._forms = sorted(self._rows) if ranking.distinct else forms
        self._ranking = ranking

    def search(self, query: str, k: int = TOP) -> list[int]:
        """Rows of at most ``k`` names, best first; [] if no word is shared.

        Names with the same normal form as a hit follow it. As on the server, they are there once for each document with
        this form.
        """
        scores, first = self._scored(query)
        rows: list[int] = []
        for document in self._ranking.order(scores, first)[:k].tolist():
            rows += self._rows[self._forms[document]] if scores[document] else []
        return rows[:k]

    def scores(self, query: str) -> np.ndarray:
        """The score of every document; a repeated word of the query counts repeatedly."""
        return self._scored(query)[0]

    def _scored(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        """The score of every document, and the place in the query of the first word that it has."""
        words, starts, documents, counts = self._postings
        total = np.zeros(len(self._forms))
        first = np.full(len(self._forms), np.iinfo(np.int64).max)
        for place, word in enumerate(normal(query).split() if words else ()):
            weight = self._weights[words[word]] if word in words else 0.0
            if not weight:
                continue
            part = slice(starts[words[word]], starts[words[word] + 1])
            rows, count = documents[part], counts[part]
            total[rows] += weight * (count * (K1 + 1) / (count + self._norm[rows]))
            first[rows] = np.minimum(first[rows], place)
        return total, first

    @cached_property
    def _norm(self) -> np.ndarray:
        """Of each document, from its length in words."""
        lengths = np.array([len(form.split()) for form in self._forms], dtype=np.float64)
        norm: np.ndarray = K1 * (1 - B + B * lengths / (lengths.sum() / len(lengths)))
        return norm

    @cached_property
    def _postings(self) -> tuple[dict[str, int], np.ndarray, np.ndarray, np.ndarray]:
        """The number of each word, where each word's postings begin, and documents and counts of all postings."""
        words: dict[str, int] = {}
        size = max(len(self._forms), 1)
        coded = (
            words.setdefault(word, len(words)) * size + document
            for document, form in enumerate(self._forms)
            for word in form.split()
        )
        unique, counts = np.unique(np.fromiter(coded, dtype=np.int64), return_counts=True)
        numbers, documents = np.divmod(unique, size)
        starts = np.searchsorted(numbers, np.arange(len(words) + 1))
        return words, starts, documents, counts

    @cached_property
    def _weights(self) -> np.ndarray:
        """Of each word."""
        counts, place = np.unique(np.diff(self._postings[1]), return_inverse=True)
        size = len(self._forms)  # math.log, because numpy's may differ from the server's in the last digit
        idf = [math.log(size - n + 0.5) - math.log(n + 0.5) for n in counts.tolist()]
        return self._ranking.weights(np.array(idf)[place])
