"""BM25 as Lucene scores it (Kamphuis et al., ECIR 2020, "Lucene (accurate)"), exact, ties by row.

    score(q, d) = sum over the tokens t of q of  idf(t) * tf / (tf + k1 * (1 - b + b * |d| / average |d|))
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))

A token that stands twice in the query counts twice. bm25s computes the scores of all (token, document) pairs once, when
the index is built. The search over them is ours, in numpy, since that of bm25s breaks ties by chance, scans all
documents per query, and needs numba (seconds of compilation) to be fast at it. Ours takes the query's tokens from the
rarest on and stops when no document without those taken can reach the k-th best (MaxScore; Turtle and Flood, 1995); the
other tokens are scored for the candidates alone. Sums are exact (float64 over float32), so a score depends on no order.

Tokens are the runs of Unicode letters, digits and underscores of the lowercased text; no stemming, no stop words. An
ISO date is three tokens, as in Lucene's standard analyser; ``dates=whole`` makes one of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.paths import written_whole
from lm_eval_rag.harness.data.corpus import Corpus

log = logging.getLogger(__name__)
Dates = Literal["whole", "split"]
TOKENS = {"whole": re.compile(r"\d{4}-\d{2}-\d{2}|\w+"), "split": re.compile(r"\w+")}
ARRAYS = ("weights", "rows", "starts", "highest")
LOOKUP = 2  # up to so many documents are added to in the time of one look-up (measured; it moves speed alone)
FORMAT = 1  # of the saved index and of the tokens in it


def tokenize(text: str, dates: Dates = "split") -> list[str]:
    """The tokens of a text, in order."""
    return TOKENS[dates].findall(text.lower())


@dataclass(frozen=True, slots=True)
class Index:
    """The score of every (token, document) pair, by token.

    Args:
        vocabulary: token -> its number t, in [0, T).
        weights: float32 (P,): the scores; token t's are ``weights[starts[t]:starts[t + 1]]``.
        rows: int32 (P,): their documents, ascending within a token.
        starts: int64 (T + 1,).
        highest: float32 (T,): the largest weight of each token.
    """

    vocabulary: dict[str, int]
    weights: Any
    rows: Any
    starts: Any
    highest: Any

    def postings(self, token: str, count: int) -> Postings:
        """Where a known token stands, for a query that holds it ``count`` times."""
        number = self.vocabulary[token]
        span = slice(self.starts[number], self.starts[number + 1])
        return Postings(self.rows[span], self.weights[span], np.float64(count), count * float(self.highest[number]))


class Postings(NamedTuple):
    """One token of a query: its documents, their scores, its count in the query and the most it can add."""

    rows: Any
    weights: Any
    count: Any
    highest: float


class BM25:
    """Searches one corpus; the index of a built corpus is kept in its folder and memory-mapped.

    Args:
        k1: Saturation of the term frequency, 0 or more.
        b: Weight of the document's length, in [0, 1].
        dates: Whether an ISO date is one token or three.

    Raises:
        UserError: A value out of range.
    """

    def __init__(self, corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, dates: Dates = "split") -> None:
        if dates not in TOKENS:
            raise unknown("dates", str(dates), TOKENS)
        if k1 < 0 or not 0 <= b <= 1:
            raise UserError(f"bm25 with k1={k1!r}, b={b!r} is not allowed: k1 must be 0 or more, b in [0, 1].")
        versions = f"format={FORMAT}, bm25s={version('bm25s')}"
        self.settings = f"bm25(k1={float(k1)}, b={float(b)}, dates={dates}, {versions})"
        self.fingerprint = f"{self.settings} over {corpus.fingerprint}"
        self._size = len(corpus)
        self._dates: Dates = dates

        def build() -> Index:
            return build_index(corpus.texts, k1, b, dates)

        self._index = _kept(corpus.folder, self.settings, build) if corpus.folder else build()

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, score) pairs, best first, ties by row.

        Documents that share no token with the text are not returned. Results do not depend on the batch.

        Raises:
            UserError: k is below 1.
        """
        at_least("k", k)
        scores = np.zeros(self._size)  # shared by the queries of this call, zero again after each
        return [self._search(Counter(tokenize(text, self._dates)), k, scores) for text in texts]

    def _search(self, query: Counter[str], k: int, scores: Any) -> list[tuple[int, float]]:
        index = self._index
        terms = [index.postings(token, count) for token, count in query.items() if token in index.vocabulary]
        terms.sort(key=lambda term: len(term.rows))
        seen, least = 0, 0.0
        for taken, term in enumerate(terms):
            rest = terms[taken:]
            if not least and seen >= k and LOOKUP * seen * len(rest) < sum(len(t.rows) for t in rest):
                found = np.unique(np.concatenate([t.rows for t in terms[:taken]]))
                if len(found) >= k:
                    whole = _completed(found, scores, rest)
                    least = _kth(whole, k)  # of some documents, so the k-th best of all is no lower
                    if least > sum(t.highest for t in rest) * (1 + 1e-9):
                        scores[found] = 0
                        return _top(found, whole, k)
            np.add.at(scores, term.rows, term.count * term.weights)
            seen += len(term.rows)
        found = np.flatnonzero(scores >= least) if least else np.flatnonzero(scores)
        best = _top(found, scores[found], k)
        scores.fill(0)
        return best


def _kth(values: Any, k: int) -> float:
    return float(np.partition(values, -k)[-k])


def _completed(found: Any, scores: Any, rest: list[Postings]) -> Any:
    """The scores of candidates once the other tokens are counted too, each looked up among the token's rows."""
    whole = scores[found]
    for term in rest:
        places = np.minimum(np.searchsorted(term.rows, found), len(term.rows) - 1)
        whole += np.where(term.rows[places] == found, term.count * term.weights[places], 0)
    return whole


def _top(rows: Any, scores: Any, k: int) -> list[tuple[int, float]]:
    """The ``k`` best of unordered candidates, ties by row."""
    if len(rows) > k:
        keep = scores >= _kth(scores, k)  # all that tie with the k-th stay until rows decide
        rows, scores = rows[keep], scores[keep]
    order = np.lexsort((rows, -scores))[:k]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def build_index(texts: Sequence[str], k1: float, b: float, dates: Dates = "split") -> Index:
    """The index of texts, computed by bm25s (float32)."""
    import bm25s

    vocabulary: dict[str, int] = {}
    numbered = [[vocabulary.setdefault(token, len(vocabulary)) for token in tokenize(text, dates)] for text in texts]
    if not vocabulary:
        nothing = np.zeros(0, np.float32)
        return Index({}, nothing, np.zeros(0, np.int32), np.zeros(1, np.int64), nothing)
    engine = bm25s.BM25(k1=k1, b=b, method="lucene")
    built = engine.build_index_from_ids(list(vocabulary.values()), numbered, show_progress=False)
    starts = built["indptr"].astype(np.int64)
    return Index(vocabulary, built["data"], built["indices"], starts, np.maximum.reduceat(built["data"], starts[:-1]))


def _kept(beside: Path, settings: str, build: Callable[[], Index]) -> Index:
    """The index in the corpus's folder, built if it is not there or damaged."""
    folder = beside / f"bm25-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
    try:
        return _load(folder)
    except (OSError, ValueError, EOFError) as error:
        if folder.is_dir():
            log.warning("The index %s is damaged (%s) and is built anew.", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    index = build()
    try:
        _save(index, folder)
    except OSError as error:
        log.warning("The index could not be kept in %s (%s); the next run builds it again.", folder, error)
    return index


def _load(folder: Path) -> Index:
    vocabulary = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    weights, rows, starts, highest = (np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in ARRAYS)
    if not len(vocabulary) == len(highest) == len(starts) - 1 or not len(weights) == len(rows) == starts[-1]:
        raise ValueError("its parts do not fit together")
    return Index(vocabulary, weights, rows, starts, highest)


def _save(index: Index, folder: Path) -> None:
    with written_whole(folder) as aside:
        for name in ARRAYS:
            np.save(aside / f"{name}.npy", getattr(index, name))
        (aside / "vocabulary.json").write_text(json.dumps(index.vocabulary), encoding="utf-8")
